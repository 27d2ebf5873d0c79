"""`rekindle hooks install`, and then the real Claude Code in a home that is thrown away."""

import json
import shutil
import subprocess
import sys

import pytest

from loopback.script import Text, ToolCall

pytestmark = pytest.mark.timeout(300)

CALLS = 50


@pytest.fixture
def rekindle(claude):
    """Run one of our commands where Claude Code works, and with its home."""

    def run(*arguments):
        ended = subprocess.run(
            [sys.executable, "-m", "rekindle", *arguments],
            cwd=claude.project,
            env={"PATH": "/usr/bin:/bin", "HOME": str(claude.home), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    run("init", "--yes", "--agent", "trades", "--harness", "claude-code")
    return run


def events(rekindle):
    lines = rekindle("events", "--json", "--last", "0").splitlines()
    return [json.loads(line) for line in lines]


def bash(command):
    return ToolCall("Bash", {"command": command, "description": "as the test says"})


def test_hooks_at_two_levels_count_every_call_once(claude, model, rekindle):
    """Fifty tool calls, reported by project and user hooks: fifty heartbeats, one session."""
    settings = claude.project / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": ["Bash"]}}')
    rekindle("hooks", "install", "--for", "project")
    rekindle("hooks", "install", "--for", "user")
    model.play(
        *(bash("false" if number % 10 == 9 else f"echo {number}") for number in range(CALLS)),
        Text("all done"),
    )
    run = claude.run("hello", "--allowedTools", "Bash", timeout=200)
    assert (run.returncode, run.result["result"]) == (0, "all done")
    rekindle("doctor", "--fix")
    found = events(rekindle)
    beats = [one for one in found if one["kind"] == "heartbeat"]
    assert len(beats) == len({one["call"] for one in beats}) == CALLS
    assert {one["session"] for one in beats} == {run.session}
    assert {one["source"] for one in found if one["kind"] == "session.started"} == {"startup"}
    assert {one["text"] for one in found if one["kind"] == "prompt.submitted"} == {"hello"}
    assert "session.ended" in {one["kind"] for one in found}
    rekindle("hooks", "uninstall", "--for", "project")
    assert settings.read_text() == '{"permissions": {"allow": ["Bash"]}}'


def test_a_removed_rekindle_folder_blocks_no_prompt(claude, model, rekindle):
    """Hooks that point to a program that is gone: the session works as if there were none."""
    rekindle("hooks", "install")
    shutil.rmtree(claude.project / ".rekindle")
    model.play(bash("echo from the tool"), Text("all done"))
    run = claude.run("hello", "--allowedTools", "Bash")
    assert (run.returncode, run.result["result"]) == (0, "all done")
    assert [part.text for part in model.log.main[1].results] == ["from the tool"]
