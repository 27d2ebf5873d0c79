"""Documents whose code blocks are run and compared with the shown output."""

import re
from collections.abc import Iterator

BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield each code block: its language, the unrendered words after it, and its body."""
    for kind, words, body in BLOCK.findall(text):
        yield kind, words.split(), body


def steps(body: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block with its shown output."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition("\n")
        yield line, shown.splitlines()


def fits(shown: str, printed: str) -> bool:
    """Return whether a line matches; `…` in a document matches anything."""
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed) is not None


def difference(shown: list[str], printed: list[str]) -> str:
    """Return the first difference between shown and printed lines, or an empty text."""
    if len(shown) != len(printed):
        return "shown:\n{}\nprinted:\n{}".format("\n".join(shown), "\n".join(printed))
    for expected, actual in zip(shown, printed, strict=True):
        if not fits(expected, actual):
            return f"shown:   {expected}\nprinted: {actual}"
    return ""


def is_shown(shown, printed):
    """Return whether the lines are printed; a line `…` matches any number of lines."""
    if "…" not in shown:
        return not difference(shown, printed)
    at = shown.index("…")
    if difference(shown[:at], printed[:at]):
        return False
    rest = shown[at + 1 :]
    return any(is_shown(rest, printed[start:]) for start in range(at, len(printed) + 1))


def join_python(text: str, word: str, *, only: bool = False) -> str:
    """Join the Python blocks: those without a word and, or `only`, those with this word."""
    kept = ([word],) if only else ([], [word])
    return "\n".join(
        body for kind, words, body in blocks(text) if kind == "python" and words in kept
    )
