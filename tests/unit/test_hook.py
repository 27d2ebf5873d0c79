"""hook.py: what a tool call waits for, and what it leaves behind."""

import json
import os
import py_compile
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rekindle import hook
from rekindle.documents import event as events
from rekindle.errors import RekindleError
from rekindle.harnesses import claude_code
from rekindle.policy.settings import Settings
from rekindle.stores.files import FileStore, inbox
from rekindle.system import clock

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SEED = 20260409


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> Path:
    """The hook as it is installed: compiled."""
    path = tmp_path_factory.mktemp("hook") / "hook.pyc"
    py_compile.compile(hook.__file__, cfile=str(path), doraise=True)
    return path


@pytest.fixture
def agent(tmp_path) -> FileStore:
    """A store that reads Claude Code's hooks."""
    harnesses = {claude_code.NAME: claude_code.read_hook}
    made = FileStore(
        tmp_path, host="here", settings=Settings(), clock=clock.now, harnesses=harnesses
    )
    made.create("trades")
    return made


@pytest.fixture
def run(program, agent):
    """Run the hook as the CLI does; gives what it printed."""

    def started(payload, event="PostToolUse", *, folder=None, cwd="/", **environment):
        place = str(agent.folder("trades").path) if folder is None else folder
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        ended = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                str(program),
                "claude-code",
                event,
                *([place] * bool(place)),
            ],
            input=data,
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin"} | environment,
            capture_output=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        return ended.stdout

    return started


def payload(call="toolu_1", **more):
    return {
        "session_id": "a424fede-8065",
        "transcript_path": "/somewhere/a424fede-8065.jsonl",
        "cwd": "/somewhere",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo hi"},
        "tool_use_id": call,
    } | more


def folded(agent, kind):
    with agent.writer("trades") as writer:
        writer.fold()
    return [one for one in agent.events_since("trades", 0).events if isinstance(one, kind)]


def test_every_tool_call_leaves_a_heartbeat(agent, run):
    """Fifty calls, fifty heartbeats, each with its tool and its own id."""
    for number in range(50):
        assert run(payload(f"toolu_{number}")) == b""
    assert len(agent.read("trades").pending) == 50
    beats = folded(agent, events.Heartbeat)
    assert [beat.call for beat in beats] == [f"toolu_{number}" for number in range(50)]
    assert {(beat.session, beat.tool) for beat in beats} == {("a424fede-8065", "Bash")}
    assert agent.read("trades").committed.last_active == beats[-1].ts
    assert inbox.segments(agent.folder("trades").inbox) == []


def test_hooks_installed_twice_count_once(agent, run):
    """The same call reported by user and project hooks is one heartbeat, folded together or not."""
    run(payload("toolu_1"))
    run(payload("toolu_1"))
    assert len(folded(agent, events.Heartbeat)) == 1
    run(payload("toolu_1"))
    assert len(folded(agent, events.Heartbeat)) == 1
    with agent.writer("trades") as writer:
        writer.snapshot()
    run(payload("toolu_1"))
    assert len(folded(agent, events.Heartbeat)) == 1
    run(payload("toolu_2"))
    assert len(folded(agent, events.Heartbeat)) == 2


def test_a_session_s_life_is_told(agent, run):
    """Start, prompt, compaction and end become events with their facts."""
    run(payload(source="startup"), "SessionStart:startup", REKINDLE_LAUNCH="launch-1")
    run(payload(prompt="Do this\nand that"), "UserPromptSubmit")
    run(payload(trigger="auto"), "PreCompact")
    run(payload(reason="other"), "SessionEnd")
    run(payload(), "Stop")
    (started,) = folded(agent, events.SessionStarted)
    assert (started.source, started.launch, started.harness) == (
        "startup",
        "launch-1",
        "claude-code",
    )
    assert folded(agent, events.PromptSubmitted)[0].text == "Do this\nand that"
    assert folded(agent, events.SessionCompacted)[0].trigger == "auto"
    assert folded(agent, events.SessionEnded)[0].reason == "other"
    assert agent.read("trades").pending == ()


def test_the_event_is_the_command_line_s_not_the_payload_s(agent, run):
    """A payload that claims to be another event is believed in nothing but its content."""
    run(payload(hook_event_name="SessionEnd"), "PostToolUse")
    assert len(folded(agent, events.Heartbeat)) == 1
    assert folded(agent, events.SessionEnded) == []


def test_a_payload_that_is_too_long_is_cut_and_marked(agent, run):
    """Ten megabytes of tool output keep their heartbeat, and little of them is stored."""
    run(payload("toolu_big", tool_input={"command": "x" * 10_000_000}))
    (record,) = agent.read("trades").pending
    assert b" cut:10000" in record.line
    assert len(record.line) < 300_000
    (beat,) = folded(agent, events.Heartbeat)
    assert (beat.call, beat.tool, beat.session) == ("toolu_big", "Bash", "a424fede-8065")


def test_a_payload_over_many_lines_is_one_record(agent, run):
    """Pretty-printed JSON is put on one line; its strings have no raw line ends."""
    run(json.dumps(payload(), indent=2).replace("\n", "\r\n").encode())
    assert len(folded(agent, events.Heartbeat)) == 1


def test_the_agent_is_found_from_where_the_session_works(agent, run, tmp_path):
    """Installed for the user, the hook takes the only agent above; with two it keeps silent."""
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    run(payload("toolu_1"), folder="", CLAUDE_PROJECT_DIR=str(below))
    run(payload("toolu_2"), folder="", cwd=below)
    assert len(folded(agent, events.Heartbeat)) == 2
    agent.create("second")
    run(payload("toolu_3"), folder="", cwd=below)
    assert len(folded(agent, events.Heartbeat)) == 2
    run(payload("toolu_4"), folder="", REKINDLE_FOLDER=str(agent.folder("trades").path))
    assert len(folded(agent, events.Heartbeat)) == 3


def test_a_folder_that_is_not_there_is_left_alone(run, tmp_path):
    """Nothing is made where no agent lives."""
    run(payload(), folder=str(tmp_path / "nobody"))
    assert not (tmp_path / "nobody").exists()


def test_the_brake_is_for_its_launch_alone(agent, run):
    """What the supervisor left is said at a boundary of that launch, and nowhere else."""
    answer = b'{"continue":false,"stopReason":"handoff"}'
    (agent.folder("trades").run / "brake-launch-1").write_bytes(answer)
    assert run(payload(), "PostToolBatch", REKINDLE_LAUNCH="launch-1") == answer
    assert run(payload(), "PostToolBatch", REKINDLE_LAUNCH="launch-2") == b""
    assert run(payload(), "PostToolBatch") == b""
    assert run(payload(), "PostToolUse", REKINDLE_LAUNCH="launch-1") == b""
    assert run(payload(), "PostToolBatch", REKINDLE_LAUNCH="../launch-1") == b""


IN_A_BROKEN_INBOX = """
import os, subprocess, sys, time
program, folder, fault = sys.argv[1:]
inbox = folder + "/run/inbox"
if fault != "gone":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", inbox], check=True)
if fault == "full":
    fd = os.open(inbox + "/0.seg", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)
elif fault == "read-only":
    subprocess.run(["mount", "-o", "remount,ro", inbox], check=True)
else:
    os.rmdir(inbox)
start = time.perf_counter()
ended = subprocess.run(
    [sys.executable, "-I", "-S", program, "claude-code", "PostToolUse", folder],
    input=sys.stdin.buffer.read(), capture_output=True,
)
print(ended.returncode, time.perf_counter() - start, ended.stderr)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize("fault", ["full", "read-only", "gone"])
def test_an_inbox_that_cannot_be_written_costs_no_time_and_no_record(agent, program, fault):
    """Exit 0 in under 250 ms; the record is spooled, and the next fold brings it in."""
    place = agent.folder("trades").path
    ended = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", IN_A_BROKEN_INBOX, program, str(place), fault],
        input=json.dumps(payload("toolu_spooled")).encode(),
        capture_output=True,
        check=True,
    )
    code, taken, complaints = ended.stdout.decode().split(maxsplit=2)
    assert (code, complaints.strip()) == ("0", "b''")
    assert float(taken) < 0.25
    assert len(inbox.spooled(place)) == 1
    assert [beat.call for beat in folded(agent, events.Heartbeat)] == ["toolu_spooled"]
    assert inbox.spooled(place) == []


def test_a_spool_that_is_not_ours_alone_is_not_used(tmp_path, monkeypatch):
    """A folder that others may write to, or a link, could lead anywhere."""
    for name, make in (
        ("open", lambda path: path.mkdir(mode=0o755)),
        ("link", lambda path: path.symlink_to(tmp_path)),
    ):
        place = tmp_path / name
        make(place)
        monkeypatch.setattr(hook, "SPOOL", str(place))
        hook.spool("/some/agent", b"\n1 hook\n")
        assert list(place.glob("*.seg")) == []


def test_a_spool_that_somebody_else_could_write_is_not_read(agent, tmp_path, monkeypatch):
    """Records planted in a folder that is not ours alone are nobody's acknowledgement."""
    place = tmp_path / "spool"
    place.mkdir(mode=0o700)
    monkeypatch.setattr(hook, "SPOOL", str(place))
    folder = agent.folder("trades").path
    planted = hook.compose("claude-code", "PostToolUse", "", json.dumps(payload()).encode(), 9)
    (place / f"{hook.spool_prefix(str(folder))}1.seg").write_bytes(planted)
    assert len(agent.read("trades").pending) == 1
    place.chmod(0o777)
    assert agent.read("trades").pending == ()
    assert folded(agent, events.Heartbeat) == []


def hostile(rng: random.Random) -> bytes:
    """A payload that somebody means harm with."""
    whole = json.dumps(payload()).encode()
    name = rng.choice(["../../../etc/passwd", "a/b", "\0", "..", "-rf", "x" * 9_000])
    return rng.choice(
        (
            lambda: b"[" * rng.randrange(1, 50_000),
            lambda: b'{"session_id":' + b"9" * 5_000 + b"}",
            lambda: b'{"session_id":"\\ud800","tool_name":"\\udfff"}',
            lambda: rng.randbytes(rng.randrange(200)),
            lambda: json.dumps(payload(name, session_id=name, tool_name=name)).encode(),
            lambda: b"\n1 event {}\n" * rng.randrange(1, 50) + b'{"session_id":"ok"}',
            lambda: whole[: rng.randrange(len(whole))],
            lambda: b'{"session_id":"a","session_id":["b"],"tool_use_id":NaN}',
            lambda: json.dumps(payload(rng.choice([None, 5, [], {}]), prompt=[1])).encode(),
        )
    )()


def test_no_payload_breaks_whoever_reads_it(agent):
    """Composed by the hook and read by the harness: an event, nothing, or a reason; one record."""
    rng = random.Random(SEED)
    harnesses = {claude_code.NAME: claude_code.read_hook}
    read = refused = 0
    for _ in range(100_000 if WHOLE else 5_000):
        event = rng.choice(
            ["SessionStart:startup", "PostToolUse", "UserPromptSubmit", "SessionEnd"]
        )
        data = hostile(rng)
        record = hook.compose("claude-code", event, rng.choice(["", "l1", "../x"]), data, len(data))
        assert record.count(b"\n") == 2
        try:
            found = inbox.Record("1.seg", 1, record.strip(b"\n")).event(harnesses)
        except RekindleError:
            refused += 1
        else:
            read += found is not None and bool(events.render(found))
    assert read > 100
    assert refused > 100


def test_no_payload_breaks_the_program(agent, run, tmp_path):
    """Through the program: always 0, never a word, never a file outside the agent's folder."""
    rng = random.Random(SEED)
    before = {path for path in tmp_path.rglob("*") if "inbox" not in path.parts}
    for _ in range(500 if WHOLE else 40):
        assert run(hostile(rng), rng.choice(["SessionStart:startup", "PostToolUse"])) == b""
    after = {path for path in tmp_path.rglob("*") if "inbox" not in path.parts}
    assert after == before
    with agent.writer("trades") as writer:
        writer.fold()
    assert agent.read("trades").pending == ()
    assert inbox.segments(agent.folder("trades").inbox) == []


def test_a_disk_that_hangs_is_given_up(program, agent):
    """An inbox whose lock is never released does not hold the agent."""
    segment = agent.folder("trades").inbox / "0.seg"
    holder = os.open(segment, os.O_RDWR | os.O_CREAT, 0o600)
    hook.fcntl.flock(holder, hook.fcntl.LOCK_EX)
    command = [sys.executable, "-I", "-S", str(program), "claude-code", "PostToolUse"]
    start = time.perf_counter()
    ended = subprocess.run(
        [*command, str(agent.folder("trades").path)],
        input=b"{}",
        capture_output=True,
        check=False,
    )
    taken = time.perf_counter() - start
    os.close(holder)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert hook.PATIENCE_SECONDS <= taken < 5
