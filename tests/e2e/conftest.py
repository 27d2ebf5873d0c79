"""Fixtures for the real agent CLIs, and a project with an agent beside them."""

import json
import shlex

import pytest

from e2e.sandbox import MANIFEST, RELAY, TASK, Rekindle


@pytest.fixture
def unbriefed(claude, place):
    """Create a project with an agent and its task, without a relay."""
    (claude.project / "rekindle.yaml").write_text(MANIFEST)
    (claude.project / "PROMPT.md").write_text(TASK)
    # The test's own hook reports the start of a tool call and the process of the CLI.
    told = shlex.join(["sh", "-c", 'echo "$CLAUDE_PID" > hooked.tmp; mv hooked.tmp hooked'])
    entry = [{"hooks": [{"type": "command", "command": told, "timeout": 5}]}]
    (claude.project / ".claude").mkdir()
    settings = claude.project / ".claude/settings.json"
    settings.write_text(json.dumps({"hooks": {"PreToolUse": entry}}))
    headless = ("-p", "--output-format", "stream-json", "--verbose", "--allowedTools=Bash")
    return Rekindle(claude, place, [str(claude.program), *headless])


@pytest.fixture
def rekindle(unbriefed):
    """Create the same project, with a relay."""
    (unbriefed.project / "relay.md").write_text(RELAY)
    unbriefed("relay", "set", "relay.md")
    return unbriefed
