"""A day of real sessions, one killed, one compacted, one clean, becomes a brief and a state."""

import json
import shutil

import pytest

from days import NOTHING, turn_of, without_times
from e2e.sandbox import bash, killed_in_a_tool_call, long_call
from e2e.test_summarize import asked, worked
from loopback.anthropic import COMPACTION, too_long
from loopback.script import Text, ToolCall
from rekindle.documents import brief as briefs
from rekindle.documents.brief import BriefLabel
from rekindle.harnesses.claude_code import claude_harness
from rekindle.stores.folders.private_files import find_private_project
from throwaway import Repository

__all__ = ["asked", "worked"]

pytestmark = pytest.mark.timeout(300)

PERSONA = '  summarizer: {adapter: command, command: ["false"]}\n'
BEGUN, WRITTEN, DONE = (
    "begin with the importer of bank statements",
    "The exporter writes all 7 columns.",
    "parser.py reads them: empty-files is resolved.",
)


@pytest.fixture
def day(rekindle, model):
    """Play three sessions that a person has started, with our hooks, in a repository."""
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace(PERSONA, ""))
    Repository(rekindle.project).init()
    rekindle("hooks", "install", "--for", "project")
    rekindle("loops", "add", "empty-files", "The parser refuses empty files")
    rekindle("loops", "add", "rate-limit", "How many an hour?")
    model.play(long_call())
    killed = rekindle.by_hand(BEGUN)
    # Claude Code writes its transcript a moment later, and a killed one has no time to.
    projects = rekindle.cli.home / ".claude/projects"
    rekindle.place.wait_for(
        lambda: any(BEGUN in path.read_text() for path in projects.glob("*/*.jsonl"))
    )
    killed_in_a_tool_call(rekindle)
    assert killed.wait() == -9
    model.play(bash("true"), too_long(), Text(WRITTEN))
    model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    assert rekindle.by_hand("write the exporter").wait() == 0
    assert model.log.side[-1].kind == COMPACTION
    model.play(bash("echo def parse > parser.py"), Text(DONE))
    assert rekindle.by_hand("make the parser take empty files").wait() == 0
    return rekindle


def answer_to(prompt):
    begun, written, done = ([turn_of(prompt, words)] for words in (BEGUN, WRITTEN, DONE))
    return {
        **NOTHING,
        "Changed": [
            {"text": "`parser.py` copes with files of no size", "turns": done},
            {"text": "there is an export in full width", "turns": written},
            {"text": "statements can half be imported", "turns": begun},
        ],
        "Next": [{"text": "finish importing statements", "turns": begun}],
        "open_loops": [
            {"id": "importer", "text": "Statements are not imported to the end", "turns": begun},
            {"id": "rate-limit", "text": "How many an hour?", "turns": written},
        ],
        "resolved": [{"id": "empty-files", "reason": "it copes with them", "turns": done}],
        "numbers": [{"name": "columns", "value": "7", "turns": written}],
    }


def played(model, answer):
    model.play(ToolCall("StructuredOutput", answer))


def test_a_day_of_three_sessions_is_in_the_brief_and_the_state(day, model, tmp_path):
    folder = day.project / ".rekindle/agents/trades"
    private = find_private_project(day.project).agent("trades").path
    kept, sealed = tmp_path / "before", tmp_path / "sealed"
    shutil.copytree(folder, kept)
    shutil.copytree(private, sealed)
    # The first model finds nothing; it only shows its request.
    played(model, NOTHING)
    day("brief", "trades")
    prompt = "".join(model.log.main[-1].prompts)
    assert all(words in prompt for words in (BEGUN, WRITTEN, DONE))
    assert "the conversation so far was compacted" in prompt
    found = []
    for _ in range(2):
        for path, copy in ((folder, kept), (private, sealed)):
            shutil.rmtree(path)
            shutil.copytree(copy, path)
        played(model, answer_to(prompt))
        told = json.loads(day("brief", "trades", "--json"))["brief"]
        assert told["how"] == "headless", told["words"]
        state = json.loads((folder / "state.json").read_bytes())
        found.append(((folder / "brief.md").read_text(), state))
    (text, state), (again, state_again) = found
    brief = briefs.parse(text)
    assert brief.content(BriefLabel.CHANGED).splitlines() == [
        "- `parser.py` copes with files of no size",
        "- there is an export in full width (unverified)",
        "- statements can half be imported (unverified)",
    ]
    assert brief.content(BriefLabel.NEXT) == "finish importing statements"
    assert {one["id"] for one in state["open_loops"]} == {"importer", "rate-limit"}
    assert [one["id"] for one in state["resolved"]] == ["empty-files"]
    assert state["numbers"] == {"columns": "7"}
    # Both are equal except for the time.
    assert text == again
    times = ("check", "seq")
    one, other = (
        {k: v for k, v in each.items() if k not in times} for each in (state, state_again)
    )
    assert without_times(json.dumps(one)) == without_times(json.dumps(other))
    # A second time nothing is new, and no model is asked.
    asked = len(model.log.main)
    assert day("brief", "trades") == text
    assert len(model.log.main) == asked
    # A question does not count as a session of the agent.
    assert len({one["session"] for one in day.events("session.started")}) == 3


def test_every_cli_can_be_asked_about_a_day(worked):
    """The CLI has run the agent, and then summarizes its work without tools."""
    said = {**NOTHING, "Risk": [{"text": "it has no test", "turns": [1]}]}
    is_claude = worked.harness is claude_harness
    worked.model.play(ToolCall("StructuredOutput", said) if is_claude else Text(json.dumps(said)))
    asked_before = len(worked.model.log.main)
    told = json.loads(worked.rekindle("brief", "trades", "--json"))["brief"]
    assert told["how"] == "headless", told["words"]
    assert "**Risk:**\n- it has no test" in told["text"]
    assert "made.txt" in "".join(worked.model.log.main[asked_before].prompts)
    assert worked.rekindle.events("brief.committed")[-1]["by"] == "summarizer"
    assert len(worked.rekindle.events("session.started")) == 1
