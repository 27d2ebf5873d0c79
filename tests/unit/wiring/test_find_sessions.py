"""A session counts as working until its CLI has written that the turn is over."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rekindle.policy.keeping.session_match import SessionProcesses
from rekindle.thresholds.keep_limits import KEEP_QUIET_SECONDS
from rekindle.wiring.keeping.find_sessions import FoundSession, read_session_state

RECORDINGS = Path(__file__).parents[2] / "recordings"
BEFORE = "2026-01-01T00:00:00.000Z"


def read_recorded(harness, case):
    (path,) = (RECORDINGS / harness).glob(f"*/{case}.jsonl")
    records = map(json.loads, path.read_text().splitlines())
    return [json.dumps(record["transcript"]) for record in records if "transcript" in record]


def find(path, harness, lines, **more):
    path.write_text("".join(line + "\n" for line in lines))
    return FoundSession(session="a", harness=harness, transcript=str(path), **more)


@pytest.mark.parametrize("harness", ["claude-code", "codex"])
@pytest.mark.parametrize("case", ["tool", "parallel", "failing-tool"])
def test_a_turn_is_not_over_before_its_end_is_written(harness, case, tmp_path):
    """Cut at any line after the prompt, the transcript is that of a working session."""
    lines = read_recorded(harness, case)
    states = [
        read_session_state(find(tmp_path / "t", harness, lines[:count], changed=0.0))
        for count in range(len(lines) + 1)
    ]
    asked = [state.is_working for state in states if state.prompts]
    over = asked.index(False)
    assert over > 3
    assert not any(asked[over:])


@pytest.mark.parametrize(("status", "is_working"), [("idle", False), ("busy", True), ("x", True)])
def test_any_status_except_idle_means_working(status, is_working, tmp_path):
    lines = read_recorded("claude-code", "tool")
    running = SessionProcesses(own=((1, 1),), status=status)
    found = find(tmp_path / "t", "claude-code", lines, changed=0.0, processes=running)
    assert read_session_state(found).is_working is is_working


class LateCli:
    """A session of a CLI that has written a text and may be in a call that it has not written."""

    def __init__(self, path, asked_at):
        asked = {"type": "user", "timestamp": asked_at, "content": [{"text": "hello"}]}
        said = {"type": "gemini", "content": "I will run the tests"}
        self.path, self.lines = path, list(map(json.dumps, (asked, said)))

    def is_working(self, pid, ago=KEEP_QUIET_SECONDS + 1):
        running = SessionProcesses(own=((pid, 1),))
        changed = time.time() - ago
        found = find(self.path, "gemini", self.lines, changed=changed, processes=running)
        return read_session_state(found).is_working


def test_a_cli_that_writes_calls_late_must_be_quiet_and_without_new_children(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", "import subprocess; subprocess.run('echo; read x', shell=True)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        parent.stdout.readline()  # its child is running
        earlier, later = LateCli(tmp_path / "a", BEFORE), LateCli(tmp_path / "b", "2999-01-01")
        assert earlier.is_working(parent.pid)
        assert not later.is_working(parent.pid)  # the child is older than the prompt: a server
        assert later.is_working(parent.pid, ago=0)
        parent.stdin.close()
        parent.wait()
        assert not earlier.is_working(parent.pid)
