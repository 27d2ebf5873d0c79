"""`review:` with the real Claude Code: another persona verifies a reported end."""

import pytest

from e2e.sandbox import TASK, Rekindle, bash
from loopback.script import Text, ToolCall

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades: {harness: claude-code, prompt: PROMPT.md, cycles: 5, review: critic}
personas:
  default: {permissions: {allowed_tools: [Bash, Write]}}
  critic: {model: careful-model, permissions: {allowed_tools: ["Bash(ls:*)"]}}
  summarizer: {adapter: command, command: ["false"]}
"""
DONE = "## Current Phase\nFinished\n\n## Next Action\nDONE\n"


def test_the_reviewer_s_refusal_reaches_the_agent_and_its_consent_ends_the_run(
    claude, model, place
):
    project, rekindle = claude.project, Rekindle(claude, place)
    (project / "rekindle.yaml").write_text(MANIFEST)
    (project / "PROMPT.md").write_text(TASK)
    draft = str(project / ".rekindle/drafts/trades/relay.md")
    report = ToolCall("Write", {"file_path": draft, "content": DONE})
    model.play(
        *(report, Text("All is done.")),
        *(bash("ls"), Text("I looked at the files.\n\nNOT DONE\nlexer.py is missing")),
        *(bash("touch lexer.py"), report, Text("Now it is done.")),
        *(bash("ls lexer.py"), Text("Both files are there.\n\nDONE")),
    )
    running = rekindle.start("run", "trades")
    assert running.wait() == 0, running.out + running.err

    reviews = [one for one in model.log.main if one.body["model"] == "careful-model"]
    agents = [one for one in model.log.main if one.body["model"] != "careful-model"]
    openings = [one for one in agents if not one.results]
    assert [len(reviews), len(openings)] == [4, 2]
    assert "An agent reports that the task below is done." in reviews[0].text
    assert TASK.strip() in reviews[0].text
    assert "lexer.py" in reviews[3].results[-1].text
    assert not reviews[3].results[-1].is_error
    assert (
        "A review does not agree. Missing, according to the review:\nlexer.py is missing"
        in openings[1].text
    )
    assert "STALL" not in openings[1].text

    assert "✗ the review does not agree: lexer.py is missing" in running.out
    assert "done and verified after cycle 2: the review agrees" in running.out
    made = rekindle.events("review.made")
    assert [(one["cycle"], one["verdict"]) for one in made] == [(1, "failed"), (2, "passed")]
    assert all(one["persona"] == "critic" and one["tokens"] > 0 for one in made), made
    launches = rekindle.events("launch.started")
    assert [one["cycle"] for one in launches] == [1, 2], "a review counts as a launch"
