"""The work of the real CLIs is shown, archived, and summarized by asking them."""

import json
import re

import pytest

from e2e.test_asked import asked, tools
from loopback.script import Text, ToolCall
from rekindle.documents import checkpoint
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.summaries import summary
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness

__all__ = ["asked"]

pytestmark = pytest.mark.timeout(300)

CALLS = {
    claude_harness.NAME: ToolCall("Bash", {"command": "touch made.txt", "description": "d"}),
    codex_harness.NAME: ToolCall("exec_command", {"cmd": "touch made.txt"}),
    gemini_harness.NAME: ToolCall("run_shell_command", {"command": "touch made.txt"}),
}
GRANTED = {
    claude_harness.NAME: "[Bash]",
    codex_harness.NAME: "[Bash, Write]",
    gemini_harness.NAME: "[run_shell_command]",
}
OWN, CHEAP = "the-agent-s-model", "a-cheap-model"
ANSWER = {
    name: [{"text": f"the gist of {name.lower()}", "turns": [2]}]
    for name in summary.list_asked_sections("checkpoint")
}


def model_of(request):
    """Return the model that a request names: Gemini has it in the address."""
    named = re.search(r"/models/([^:]+):", request.path)
    return named[1] if named else request.body["model"]


@pytest.fixture
def worked(asked):
    """Run an agent of each CLI once."""
    rekindle = asked.rekindle
    granted = GRANTED[asked.harness.NAME]
    with (rekindle.project / "rekindle.yaml").open("a") as file:
        file.write(
            f"personas:\n  default: {{model: {OWN}, permissions: {{allowed_tools: {granted}}}}}\n"
            f"  summarizer: {{model: {CHEAP}}}\n"
        )
    if asked.harness is gemini_harness:
        rekindle("hooks", "install")
        asked.trusting()
    asked.model.play(CALLS[asked.harness.NAME], Text("the file is made"))
    rekindle("run", "trades", "--once")
    return asked


def test_what_was_done_is_shown_after_the_cli_has_deleted_it(worked):
    # It was archived when the launch ended, before any command needed it.
    for path in worked.sessions:
        path.unlink()
    told = worked.rekindle("transcript", "trades")
    assert "Ship the parser" in told
    assert "made.txt: ok" in told
    assert "the file is made" in told


def test_it_is_summarized_by_the_cli_without_its_tools(worked):
    path = worked.sessions[0]
    said = ToolCall("StructuredOutput", ANSWER) if worked.harness is claude_harness else None
    worked.model.play(said or Text(json.dumps(ANSWER)))
    asked_before = len(worked.model.log.main)
    files = worked.project
    told = json.loads(worked.rekindle("summarize", str(path), "--as", "checkpoint", "--json"))
    assert told["how"] == "headless", told["words"]
    assert told["tokens"] > 0
    found = checkpoint.parse(told["text"])
    assert (
        found.content(CheckpointSection.COMPLETED_WORK) == "- the gist of completed work (turn 2)"
    )
    request = worked.model.log.main[asked_before]
    models = [model_of(one) for one in worked.model.log.main]
    own, summarizing = models[:2], models[2:]  # the agent's two turns; the end of its cycle, this
    assert (own, set(summarizing)) == ([OWN, OWN], {CHEAP}), models
    assert tools(request) <= worked.offered | {"StructuredOutput"}
    assert "made.txt" in "".join(request.prompts)
    assert worked.project == files
    noted = worked.rekindle.events("summary.made")[-1]
    assert (noted["document"], noted["how"]) == ("checkpoint", "headless")
    assert noted["tokens"] == told["tokens"]
    # The summary's own call does not count as a session of the agent.
    assert len(worked.rekindle.events("session.started")) == 1
