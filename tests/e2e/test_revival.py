"""The real Claude Code is killed in the middle of a tool call, and the work goes on."""

import json
import shlex
import signal
import sys
from pathlib import Path

import pytest

from loopback.script import Hang, Text, ToolCall

pytestmark = pytest.mark.timeout(180)

BANNER = "=== RECOVERY DETECTED ==="
TASK = "# Task\nShip the parser, in small steps.\n"
MANIFEST = """\
version: 1
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
personas:
  default: {permissions: {allowed_tools: [Bash]}}
"""
RELAY = """\
## Current Phase
Implementation

## Next Action
Write the parser's tests

## Open Questions
- Which encoding?
"""
WORK = "import time, pathlib; pathlib.Path('working').touch(); time.sleep(600)"
"""A tool call that would take ten minutes."""


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "as the test says"})


def long_call() -> ToolCall:
    return bash(shlex.join([sys.executable, "-c", WORK]))


class Rekindle:
    """Our own program, in the place and the home of the sandboxed Claude Code."""

    def __init__(self, claude, place):
        self.claude, self.place, self.project = claude, place, claude.project

    def start(self, *arguments: str):
        return self.place.start(
            [sys.executable, "-I", "-m", "rekindle", *arguments],
            env=self.claude.environment(LC_ALL="C.UTF-8"),
            cwd=self.project,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        started = self.start(*arguments)
        assert started.wait() == code, started.out + started.err
        return started.out

    def events(self, kind: str = "") -> list[dict]:
        lines = self("events", "--json", "--last", "0").splitlines()
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in {"", one["kind"]}]

    def claude_by_hand(self, prompt: str, *arguments: str):
        """What a person types, who knows nothing of a supervisor."""
        argv = [str(self.claude.program), "-p", "--output-format", "stream-json", "--verbose"]
        return self.place.start(
            [*argv, "--allowedTools=Bash", *arguments],
            env=self.claude.environment(),
            cwd=self.project,
            stdin=prompt,
        )

    @property
    def at_work(self) -> Path:
        """There once the long tool call has begun."""
        return self.project / "working"

    def tools(self) -> list[list[str]]:
        return [argv for argv in self.place.processes() if WORK in argv]

    def agents(self) -> list[list[str]]:
        names = {"claude", str(self.claude.program)}
        return [argv for argv in self.place.processes() if names & set(argv[:1])]

    def wait_until_hooked(self) -> int:
        """Claude Code's own process number, as its hook was told it when the tool call began."""
        hooked = self.project / "hooked"
        self.place.wait_for(lambda: (self.at_work.exists() and hooked.exists()) or None)
        return int(hooked.read_text())


@pytest.fixture
def rekindle(claude, place):
    (claude.project / "rekindle.yaml").write_text(MANIFEST)
    (claude.project / "PROMPT.md").write_text(TASK)
    (claude.project / "relay.md").write_text(RELAY)
    # A hook of the test's own says when a tool call begins, and in which process.
    told = shlex.join(["sh", "-c", 'echo "$CLAUDE_PID" > hooked.tmp; mv hooked.tmp hooked'])
    entry = [{"hooks": [{"type": "command", "command": told, "timeout": 5}]}]
    (claude.project / ".claude").mkdir()
    settings = claude.project / ".claude/settings.json"
    settings.write_text(json.dumps({"hooks": {"PreToolUse": entry}}))
    made = Rekindle(claude, place)
    made("relay", "set", "relay.md")
    return made


def killed_in_a_tool_call(rekindle) -> int:
    """Kill Claude Code, and it alone, while its tool runs."""
    pid = rekindle.wait_until_hooked()
    assert len(rekindle.tools()) == 1
    rekindle.place.signal(pid, signal.SIGKILL)
    return pid


def test_a_supervised_session_goes_on_after_kill_9(rekindle, model):
    """The orphaned tool is ended before anything else starts, and the same session goes on."""
    resumed = Hang(Text("all done"))
    model.play(long_call(), resumed)
    running = rekindle.start("run")
    killed_in_a_tool_call(rekindle)
    request = model.log.wait_for(lambda request: request.step is resumed, timeout=60)
    assert rekindle.tools() == []  # it would have gone on for ten minutes
    assert len(rekindle.agents()) == 1
    resumed.release.set()
    assert running.wait() == 0, running.err
    first = model.log.main[0]
    assert first.prompts[0] in request.text  # the same conversation, with what came before
    assert "process was interrupted" in request.prompts[-1]
    assert BANNER not in request.text
    started = rekindle.events("launch.started")
    assert [one.get("resumes", False) for one in started] == [False, True]
    assert len({one["session"] for one in started}) == 1
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert ended[0]["swept"] >= 1
    assert "the same session goes on" in running.out


def test_a_supervisor_that_is_killed_takes_its_agent_along(rekindle, model):
    """Nothing runs on unsupervised; the next run goes on in the same session."""
    resumed = Hang(Text("all done"))
    model.play(long_call(), resumed)
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    assert rekindle.agents()
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    rekindle.place.wait_for(lambda: not rekindle.agents() and not rekindle.tools(), timeout=20)
    again = rekindle.start("run")
    model.log.wait_for(lambda request: request.step is resumed, timeout=60)
    resumed.release.set()
    assert again.wait() == 0, again.err
    started = rekindle.events("launch.started")
    assert len({one["session"] for one in started}) == 1
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["lost", "clean"]
    assert {one["cycle"] for one in started} == {1}


def test_a_session_whose_transcript_is_gone_is_taken_over_by_a_fresh_one(rekindle, model):
    """Resuming fails, and once more; then a fresh session opens with the recovery notice."""
    rekindle("loops", "add", "rate-limit", "How many an hour?")
    model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    (session,) = {one["session"] for one in rekindle.events("launch.started")}
    rekindle.claude.transcript(session).unlink()
    killed_in_a_tool_call(rekindle)
    assert running.wait() == 0, running.err
    assert [one["exit"] for one in rekindle.events("launch.ended")] == [
        "crash",
        "resume-failed",
        "resume-failed",
        "clean",
    ]
    (prompt,) = model.log.main[-1].prompts
    assert prompt.startswith(BANNER)
    assert "  Task: Write the parser's tests\n  Open loops: 1\n" in prompt
    assert "rate-limit: How many an hour?" in prompt
    assert RELAY.strip() in prompt
    assert prompt.rstrip().endswith(TASK.strip())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_from_the_operator_is_not_a_crash(rekindle, model, number):
    """It stops the agent and its tool; the next run goes on in the same session."""
    model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(number)
    assert running.wait() == 130, running.err
    assert rekindle.agents() == rekindle.tools() == []
    assert "goes on in the same session" in running.out
    rekindle("run")
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["interrupted", "clean"]
    assert len({one["session"] for one in rekindle.events("launch.started")}) == 1
