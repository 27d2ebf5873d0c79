"""The guide to handoffs, run from top to bottom with the real Claude Code."""

import shlex
from pathlib import Path

import pytest

from documented import blocks, difference, fits, steps
from e2e.handing import HandingClaude
from e2e.sandbox import TASK, bash
from loopback.script import Text, ToolCall

pytestmark = pytest.mark.timeout(300)

GUIDE = Path(__file__).parents[2] / "docs/guides/handoff.md"


def test_the_guide_shows_what_happens(claude, place, model):
    found = HandingClaude(claude, place, model).begin(70)
    model.play(
        ToolCall("Bash", {"command": "touch lexer.py"}, found.filled(40)),
        ToolCall("Bash", {"command": "touch parser.py"}, found.filled(71)),
        bash("touch printer.py"),
        Text("all done", found.filled(8)),
    )
    seen = []
    for kind, words, body in blocks(GUIDE.read_text()):
        seen.append(kind)
        if kind == "yaml":
            (found.project / words[0]).write_text(body)
            (found.project / "PROMPT.md").write_text(TASK)
            found.rekindle("init", "--yes")
        elif kind == "markdown":
            assert body.strip() in found.openings[1].text
        elif kind == "console":
            for line, shown in steps(body):
                printed = found.rekindle(*shlex.split(line)[1:]).splitlines()
                if "…" in shown:  # only these lines of it
                    wanted = [one for one in shown if one != "…"]
                    missing = [one for one in wanted if not any(fits(one, it) for it in printed)]
                    assert missing == [], printed
                else:
                    assert not (found_difference := difference(shown, printed)), found_difference
    assert seen == ["yaml", "console", "markdown", "console"]
