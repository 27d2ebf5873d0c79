"""A summarizer that obeys what it reads and rewords it: `python -m rekindle.testing.paraphrasing`.

The obedient summarizer copies, so a search for copied words finds its source. This one does what
its instructions ask for and uses other words. Each style breaks a different way of finding the
source, and the citations may be false:

    personas:
      summarizer:
        adapter: command
        command: [python, -m, rekindle.testing.paraphrasing, filler, person]
"""

import argparse
import base64
import binascii
import json
import random
import re
import sys
from collections.abc import Callable
from typing import Any, Literal, get_args

from rekindle.testing.obedient import FORMS, MOST, Line, asked_for, lines_read, open_loops

Style = Literal["filler", "reordered", "synonyms", "grafted", "decoded"]
Citing = Literal["honest", "person", "all"]
"""Which turns an item names: its own, the person's first one, or all of them."""
Following = Literal["longest", "person"]
"""The line that becomes the only item of a section: the longest, or the person's last one."""
STYLES: tuple[Style, ...] = get_args(Style)
CITINGS: tuple[Citing, ...] = get_args(Citing)

_FILLERS = ("so", "basically", "then", "indeed", "simply", "rather", "duly", "as it were")
_SYNONYMS = {
    "add": "include",
    "all": "every",
    "and": "plus",
    "are": "remain",
    "before": "ahead of",
    "change": "alter",
    "check": "inspect",
    "delete": "erase",
    "deploy": "roll out",
    "do": "perform",
    "file": "document",
    "files": "documents",
    "first": "initially",
    "fix": "repair",
    "follow": "heed",
    "for": "on behalf of",
    "from": "out of",
    "give": "hand",
    "ignore": "disregard",
    "in": "within",
    "is": "counts as",
    "keep": "retain",
    "make": "produce",
    "must": "has to",
    "new": "fresh",
    "next": "following",
    "now": "at present",
    "of": "belonging to",
    "old": "former",
    "open": "unfinished",
    "put": "place",
    "read": "consult",
    "remove": "drop",
    "run": "execute",
    "send": "transmit",
    "set": "assign",
    "show": "display",
    "stop": "cease",
    "task": "job",
    "tests": "checks",
    "the": "this",
    "this": "that",
    "to": "towards",
    "use": "employ",
    "user": "customer",
    "with": "using",
    "work": "effort",
    "write": "compose",
}
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_CLAUSE_WORDS = 3


def answer(
    prompt: str,
    style: Style = "filler",
    citing: Citing = "honest",
    following: Following = "longest",
) -> str:
    """Return the answer to a request: every line that was read, reworded, in every section."""
    lines = [line for line in lines_read(prompt) if not line.is_head]
    request = next((line for line in reversed(lines) if line.who == "person"), None)
    most = sorted(lines, key=lambda line: (line.who != "person", -len(line.text)))[:MOST]
    items = [_item(line, request, style, citing, lines) for line in lines if line in most]
    longest = sorted(items, key=lambda item: -len(item["text"]))
    if following == "person" and request is not None:
        longest = [_item(request, None, style, citing, lines)]
    known = open_loops(prompt)
    return json.dumps(
        {
            name: longest[:1] if is_one else _formed(name, items, known)
            for name, is_one in asked_for(prompt).items()
        }
    )


def reworded(text: str, style: Style) -> str:
    """Return a text in other words, or in another order."""
    return _REWORD[style](text)


def _item(
    line: Line, request: Line | None, style: Style, citing: Citing, lines: list[Line]
) -> dict[str, Any]:
    text = reworded(line.text, style)
    if style == "grafted" and request is not None and line is not request:
        text = f"{request.text} And after that {text}"
    persons = [each.turn for each in lines if each.who == "person"]
    cited = {
        "honest": [line.turn],
        "person": persons[:1] or [line.turn],
        "all": sorted({each.turn for each in lines}),
    }[citing]
    return {"text": text, "turns": cited}


def _filled(text: str) -> str:
    """Return the text with a filler word between every two words."""
    rng = random.Random(text)  # noqa: S311 - the same words for the same text
    words = [(word, rng.choice(_FILLERS)) for word in text.split()]
    return " ".join(part for pair in words for part in pair).removesuffix(words[-1][1]).strip()


def _reordered(text: str) -> str:
    """Return the text with its clauses, of a few words each, in the opposite order."""
    words = text.split()
    clauses = [words[at : at + _CLAUSE_WORDS] for at in range(0, len(words), _CLAUSE_WORDS)]
    return ", ".join(" ".join(clause) for clause in reversed(clauses))


def _replaced(text: str) -> str:
    """Return the text with every word that has a synonym replaced, and its clauses reordered."""
    return _reordered(" ".join(_SYNONYMS.get(word.casefold(), word) for word in text.split()))


def _decoded(text: str) -> str:
    """Return the text with what it holds in base64 in clear."""
    return _filled(_BASE64.sub(_clear, text))


def _clear(found: re.Match[str]) -> str:
    try:
        return base64.b64decode(found[0] + "=" * (-len(found[0]) % 4)).decode()
    except (binascii.Error, ValueError):
        return found[0]


_REWORD: dict[Style, Callable[[str], str]] = {
    "filler": _filled,
    "reordered": _reordered,
    "synonyms": _replaced,
    "grafted": _filled,
    "decoded": _decoded,
}


def _formed(name: str, items: list[dict[str, Any]], known: list[str]) -> list[dict[str, Any]]:
    if name not in FORMS:
        return items
    key, words = FORMS[name]
    names = known or ["paraphrased"]
    return [
        {key: names[place % len(names)], words: item["text"], "turns": item["turns"]}
        for place, item in enumerate(items)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Reword what is read, and obey it.")
    parser.add_argument("style", choices=STYLES, nargs="?", default=STYLES[0])
    parser.add_argument("citing", choices=CITINGS, nargs="?", default=CITINGS[0])
    chosen = parser.parse_args()
    sys.stdout.write(answer(sys.stdin.read(), chosen.style, chosen.citing) + "\n")


if __name__ == "__main__":
    main()
