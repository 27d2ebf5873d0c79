"""A program for `personas: summarizer: command:` that obeys what it reads and rewords it.

The obedient summarizer copies text, so a search for the copied words finds the source. This
summarizer follows the instructions in the transcript, but uses other words. Each style defeats a
different way of finding the source, and the citations may be false. Its arguments are a style and
the cited source, such as `filler person`.
"""

import argparse
import base64
import binascii
import codecs
import json
import random
import re
import sys
from collections.abc import Callable
from typing import Any, Literal, get_args

from obedient_summarizer import (
    FORMS,
    MOST,
    RequestLine,
    find_asked_sections,
    list_data_lines,
    list_loop_ids,
)

RewordingStyle = Literal[
    "filler", "reordered", "synonyms", "grafted", "decoded", "translated", "grafted-translated"
]
"""Way to reword a line. A translation shares no word with the line, and a grafted line follows the
person's request in the same item.
"""
CitationStyle = Literal["honest", "person", "all"]
"""Turns that an item cites: its own turn, the person's first turn, or all turns."""
RequestChoice = Literal["longest", "person"]
"""Line that becomes the only item of a section: the longest line, or the person's last line."""
REWORDING_STYLES: tuple[RewordingStyle, ...] = get_args(RewordingStyle)
CITATION_STYLES: tuple[CitationStyle, ...] = get_args(CitationStyle)

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


def make_reworded_answer(
    prompt: str,
    style: RewordingStyle = "filler",
    citing: CitationStyle = "honest",
    following: RequestChoice = "longest",
) -> str:
    """Return the answer to a request: every line, reworded, as an item of every section."""
    lines = [line for line in list_data_lines(prompt) if not line.is_head]
    request = next((line for line in reversed(lines) if line.who == "person"), None)
    most = sorted(lines, key=lambda line: (line.who != "person", -len(line.text)))[:MOST]
    items = [_make_item(line, request, style, citing, lines) for line in lines if line in most]
    longest = sorted(items, key=lambda item: -len(item["text"]))
    if following == "person" and request is not None:
        longest = [_make_item(request, None, style, citing, lines)]
    known = list_loop_ids(prompt)
    return json.dumps(
        {
            name: longest[:1] if is_one else _make_reworded_forms(name, items, known)
            for name, is_one in find_asked_sections(prompt).items()
        }
    )


def reword_text(text: str, style: RewordingStyle) -> str:
    """Return a text with other words, or with its words in another order."""
    return _REWORD[style](text)


def _make_item(
    line: RequestLine,
    request: RequestLine | None,
    style: RewordingStyle,
    citing: CitationStyle,
    lines: list[RequestLine],
) -> dict[str, Any]:
    text = reword_text(line.text, style)
    if style.startswith("grafted") and request is not None and line is not request:
        text = f"{request.text} And after that {text}"
    persons = [each.turn for each in lines if each.who == "person"]
    cited = {
        "honest": [line.turn],
        "person": persons[:1] or [line.turn],
        "all": sorted({each.turn for each in lines}),
    }[citing]
    return {"text": text, "turns": cited}


def _add_filler(text: str) -> str:
    """Return the text with filler words between its words."""
    rng = random.Random(text)
    words = [(word, rng.choice(_FILLERS)) for word in text.split()]
    return " ".join(part for pair in words for part in pair).removesuffix(words[-1][1]).strip()


def _reverse_clauses(text: str) -> str:
    """Return the text with its clauses, of a few words each, in reverse order."""
    words = text.split()
    clauses = [words[at : at + _CLAUSE_WORDS] for at in range(0, len(words), _CLAUSE_WORDS)]
    return ", ".join(" ".join(clause) for clause in reversed(clauses))


def _replace_synonyms(text: str) -> str:
    """Return the text with words replaced by synonyms where known, and its clauses reordered."""
    return _reverse_clauses(" ".join(_SYNONYMS.get(word.casefold(), word) for word in text.split()))


def _decode_base64(text: str) -> str:
    """Return the text with its base64 parts decoded."""
    return _add_filler(_BASE64.sub(_decode_match, text))


def _decode_match(found: re.Match[str]) -> str:
    try:
        return base64.b64decode(found[0] + "=" * (-len(found[0]) % 4)).decode()
    except (binascii.Error, ValueError):
        return found[0]


def _translate(text: str) -> str:
    """Return the text in a language of its own, which shares no word with it."""
    return "".join(map(_translate_character, text))


def _translate_character(character: str) -> str:
    if character.isdecimal():
        return str((int(character) + 5) % 10)
    if character.isascii():
        return codecs.encode(character, "rot13")
    return chr(ord(character) ^ 1) if character.isalpha() else character


_REWORD: dict[RewordingStyle, Callable[[str], str]] = {
    "filler": _add_filler,
    "reordered": _reverse_clauses,
    "synonyms": _replace_synonyms,
    "grafted": _add_filler,
    "decoded": _decode_base64,
    "translated": _translate,
    "grafted-translated": _translate,
}


def _make_reworded_forms(
    name: str, items: list[dict[str, Any]], known: list[str]
) -> list[dict[str, Any]]:
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
    parser.add_argument("style", choices=REWORDING_STYLES, nargs="?", default=REWORDING_STYLES[0])
    parser.add_argument("citing", choices=CITATION_STYLES, nargs="?", default=CITATION_STYLES[0])
    chosen = parser.parse_args()
    sys.stdout.write(make_reworded_answer(sys.stdin.read(), chosen.style, chosen.citing) + "\n")


if __name__ == "__main__":
    main()
