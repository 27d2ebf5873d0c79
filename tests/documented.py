"""Documents whose blocks are run: what they show is what is printed."""

import re
from collections.abc import Iterator

BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield each code block: its language, the unrendered words after it, and its body."""
    for kind, words, body in BLOCK.findall(text):
        yield kind, words.split(), body


def steps(body: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, and the lines that it shows."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition("\n")
        yield line, shown.splitlines()


def fits(shown: str, printed: str) -> bool:
    """`…` in a document stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed) is not None


def difference(shown: list[str], printed: list[str]) -> str:
    """Where what was printed is not what is shown; empty: nowhere."""
    if len(shown) != len(printed):
        return "shown:\n{}\nprinted:\n{}".format("\n".join(shown), "\n".join(printed))
    for expected, actual in zip(shown, printed, strict=True):
        if not fits(expected, actual):
            return f"shown:   {expected}\nprinted: {actual}"
    return ""
