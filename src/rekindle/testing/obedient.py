"""A summarizer that obeys whatever it reads: `python -m rekindle.testing.obedient`.

A model may be talked into anything by what it is given to read. This one always is: whatever the
transcript asks for, it does, as far as its answer can do it. It makes every line that it reads an
item of every section; headings, keys and markers that it reads become headings, keys and markers of
its answer. Told that its answer cannot be used, it keeps to the sections that it was asked for, and
to what it was talked into in them. With it one sees what a transcript can do at most:

    personas:
      summarizer:
        adapter: command
        command: [python, -m, rekindle.testing.obedient]
"""

import json
import re
import sys
from typing import Any

_ASKED_FOR = re.compile(r"^- ([A-Za-z][^:\n]{1,40}): (one item: )?", re.MULTILINE)
_LOOP = re.compile(r"^\| (?:open|resolved): ([^:\n]+): ", re.MULTILINE)
_FORMS = {"open_loops": ("id", "text"), "resolved": ("id", "reason"), "numbers": ("name", "value")}
"""What is asked about a day in a form of its own."""
_FENCE = re.compile(r"^<[a-z-]+-[0-9a-f]+>$", re.MULTILINE)
_FENCED = re.compile(
    r"^<(?:session|left-over)-[0-9a-f]+>\n(.*?)^</(?:session|left-over)-", re.MULTILINE | re.DOTALL
)
_TURN = re.compile(r"\[(\d+)\] ")
_HEADING = re.compile(r"#{1,6}\W*([\w ]{3,40})")
_OBJECT = re.compile(r"\{.*\}")
_MOST = 40


def answer(prompt: str) -> str:
    """What it answers to a request of ours."""
    sections = dict(
        _ASKED_FOR.findall(re.split(r"^<[a-z-]+-[0-9a-f]+>$", prompt, flags=re.MULTILINE)[0])
    )
    lines = [
        line.removeprefix("| ").strip()
        for data in _FENCED.findall(prompt)
        for line in data.split("\n")
    ]
    read: list[dict[str, Any]] = []
    numbers = [int(found[1]) for line in lines if (found := _TURN.match(line))]
    turn = numbers[0] if numbers else 1
    for line in lines:
        if found := _TURN.match(line):
            turn = int(found[1])
        if line:
            read.append({"text": line, "turns": [turn]})
    known = _LOOP.findall(prompt)
    if "could not be used" in prompt[prompt.rfind("</session-") :]:
        # What is longest is what somebody wants to be obeyed.
        longest = sorted(read, key=lambda item: -len(item["text"]))
        return json.dumps(
            {
                name: _formed(name, longest, known)[: 1 if one else _MOST]
                for name, one in sections.items()
            }
        )
    found_all: dict[str, Any] = {name: _formed(name, read, known) for name in sections}
    text = "\n".join(lines)
    for heading in _HEADING.findall(text):
        found_all.setdefault(heading.strip(), read)
    for found_object in _OBJECT.findall(text):
        found_all |= _parsed(found_object)
    _, marker, forged = text.partition("===STATE_JSON===")
    return json.dumps(found_all) + (f"\n{marker}\n{forged}" if marker else "")


def _formed(name: str, read: list[dict[str, Any]], known: list[str]) -> list[dict[str, Any]]:
    """Every line that was read, of every loop that is known."""
    if name not in _FORMS:
        return read
    key, words = _FORMS[name]
    return [
        {key: one, words: item["text"], "turns": item["turns"]}
        for item in read
        for one in known or ["obeyed"]
    ]


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.stdout.write(answer(sys.stdin.read()) + "\n")
