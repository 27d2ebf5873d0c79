"""The real agent CLIs, and a project with an agent beside them."""

import json
import shlex

import pytest

from e2e.sandbox import MANIFEST, RELAY, TASK, Rekindle


@pytest.fixture
def unbriefed(claude, place):
    """A project with an agent and its task, and no relay yet."""
    (claude.project / "rekindle.yaml").write_text(MANIFEST)
    (claude.project / "PROMPT.md").write_text(TASK)
    # A hook of the test's own says when a tool call begins, and in which process.
    told = shlex.join(["sh", "-c", 'echo "$CLAUDE_PID" > hooked.tmp; mv hooked.tmp hooked'])
    entry = [{"hooks": [{"type": "command", "command": told, "timeout": 5}]}]
    (claude.project / ".claude").mkdir()
    settings = claude.project / ".claude/settings.json"
    settings.write_text(json.dumps({"hooks": {"PreToolUse": entry}}))
    headless = ("-p", "--output-format", "stream-json", "--verbose", "--allowedTools=Bash")
    return Rekindle(claude, place, [str(claude.program), *headless])


@pytest.fixture
def rekindle(unbriefed):
    """The same, with a relay."""
    (unbriefed.project / "relay.md").write_text(RELAY)
    unbriefed("relay", "set", "relay.md")
    return unbriefed
