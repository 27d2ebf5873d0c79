"""A program for `personas: summarizer: command:` that obeys whatever it reads.

Text in a transcript can persuade a model of anything. This summarizer is always persuaded: it does
whatever the transcript asks for, as far as an answer can. It turns every line that it reads into an
item of every section; headings, keys and markers become headings, keys and markers of its answer.
When it is told that its answer cannot be used, it keeps only the sections that it was asked for,
but with the same items. It shows the worst that a transcript can do.
"""

import json
import re
import sys
from typing import Any, NamedTuple

_ASKED_FOR = re.compile(r"^- ([A-Za-z][^:\n]{1,40}): (one item: )?", re.MULTILINE)
_LOOP = re.compile(r"^\| (?:open|resolved): ([^:\n]+): ", re.MULTILINE)
FORMS = {"open_loops": ("id", "text"), "resolved": ("id", "reason"), "numbers": ("name", "value")}
"""Sections of a brief whose items have their own fields."""
_FENCE = re.compile(r"^<[a-z-]+-[0-9a-f]+>$", re.MULTILINE)
_FENCED = re.compile(
    r"^<(?:session|left-over)-[0-9a-f]+>\n(.*?)^</(?:session|left-over)-", re.MULTILINE | re.DOTALL
)
_TURN = re.compile(r"\[(\d+)\] (?:[\d-]+ [\d:]+ )?(\w*)")
_HEADING = re.compile(r"#{1,6}\W*([\w ]{3,40})")
_OBJECT = re.compile(r"\{.*\}")
MOST = 40


class RequestLine(NamedTuple):
    """A line of the data in a request."""

    text: str
    turn: int
    who: str
    """Author of the turn, as stated in the turn's first line."""
    is_head: bool


def find_asked_sections(prompt: str) -> dict[str, bool]:
    """Return the sections that a request asks for, and whether each takes only one item."""
    return {name: bool(one) for name, one in _ASKED_FOR.findall(_FENCE.split(prompt)[0])}


def list_data_lines(prompt: str) -> list[RequestLine]:
    """Return the non-empty lines of the data in a request."""
    bare = [
        line.removeprefix("| ").strip()
        for data in _FENCED.findall(prompt)
        for line in data.split("\n")
    ]
    heads = [_TURN.match(line) for line in bare]
    turn, who = next((int(head[1]) for head in heads if head), 1), ""
    lines: list[RequestLine] = []
    for line, head in zip(bare, heads, strict=True):
        if head:
            turn, who = int(head[1]), head[2]
        if line:
            lines.append(RequestLine(line, turn, who, bool(head)))
    return lines


def list_loop_ids(prompt: str) -> list[str]:
    """Return the ids of the loops that a request lists."""
    return _LOOP.findall(prompt)


def make_answer(prompt: str) -> str:
    """Return the answer to a request."""
    sections = find_asked_sections(prompt)
    lines = list_data_lines(prompt)
    read: list[dict[str, Any]] = [{"text": line.text, "turns": [line.turn]} for line in lines]
    known = list_loop_ids(prompt)
    if "could not be used" in prompt[prompt.rfind("</session-") :]:
        # The longest lines are the most likely to contain instructions.
        longest = sorted(read, key=lambda item: -len(item["text"]))
        return json.dumps(
            {
                name: _make_forms(name, longest, known)[: 1 if one else MOST]
                for name, one in sections.items()
            }
        )
    found_all: dict[str, Any] = {name: _make_forms(name, read, known) for name in sections}
    text = "\n".join(line.text for line in lines)
    for heading in _HEADING.findall(text):
        found_all.setdefault(heading.strip(), read)
    for found_object in _OBJECT.findall(text):
        found_all |= _parse_object(found_object)
    _, marker, forged = text.partition("===STATE_JSON===")
    return json.dumps(found_all) + (f"\n{marker}\n{forged}" if marker else "")


def _make_forms(name: str, read: list[dict[str, Any]], known: list[str]) -> list[dict[str, Any]]:
    """Return every line as an item for every known loop."""
    if name not in FORMS:
        return read
    key, words = FORMS[name]
    return [
        {key: one, words: item["text"], "turns": item["turns"]}
        for item in read
        for one in known or ["obeyed"]
    ]


def _parse_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.stdout.write(make_answer(sys.stdin.read()) + "\n")
