"""The hook program: what a tool call waits for, and what it leaves behind."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from conftest import RELAY
from rekindle.documents import events, relay
from rekindle.errors import RekindleError
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.hook import record_event, record_writer, session_agent, timeouts
from rekindle.policy.handoff.window_rule import BrakeRule, render_notice
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import (
    FileStore,
    supervisor_locks,
)
from rekindle.stores.folders.brake_files import BrakeFiles
from rekindle.stores.log import inbox
from rekindle.system import (
    clock,
    host,
)
from rekindle.system.files import bytecode, file_locks, hook_program, user_folder
from rekindle.wiring.access import trust_checks

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SEED = 20260409
BIG = 10_000_000 if WHOLE else 100_000


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> Path:
    """The hook as it is installed: compiled."""
    path = tmp_path_factory.mktemp("hook") / "hook.pyc"
    path.write_bytes(hook_program.compile_hook())
    return path


@pytest.fixture
def agent(tmp_path) -> FileStore:
    """A store that reads hooks."""
    harnesses = {each.NAME: each.read_hook for each in (claude_harness, codex_harness)}
    made = FileStore(
        tmp_path, host="here", settings=Settings(), clock=clock.read_clock, harnesses=harnesses
    )
    made.create("trades")
    return made


@pytest.fixture
def brakes(tmp_path) -> BrakeFiles:
    """The folder of a launch, outside the workspace."""
    place = tmp_path / "launch"
    place.mkdir()
    return BrakeFiles(place, place)


@pytest.fixture
def run(program, agent, brakes):
    """Run the hook as the CLI does; gives what it printed."""

    def started(
        payload, event="PostToolUse", *, harness="claude-code", folder=None, cwd="/", **environment
    ):
        place = str(agent.folder("trades").path) if folder is None else folder
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        ended = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                str(program),
                harness,
                event,
                *([place] * bool(place)),
            ],
            input=data,
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin", "REKINDLE_RULES": str(brakes.folder)} | environment,
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
    assert inbox.list_segments(agent.folder("trades").inbox) == []


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


def test_a_question_of_ours_is_not_a_session(agent, run, program):
    """Nothing is read, written or printed, and the hook does not wait for its writer."""
    for event in ("SessionStart:startup", "UserPromptSubmit", "BeforeAgent", "PostToolUse"):
        assert run(payload(source="startup"), event, REKINDLE_ONE_SHOT="1") == b""
    assert agent.read("trades").pending == ()
    assert inbox.list_segments(agent.folder("trades").inbox) == []
    argv = [sys.executable, "-I", "-S", str(program), "codex", "SessionStart:startup"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env={"REKINDLE_ONE_SHOT": "1"}) as hooked:
        assert hooked.wait(10) == 0


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
    run(payload(), folder=str(tmp_path / "stranger"))
    assert not (tmp_path / "stranger").exists()


ANSWER = b'{"continue":false,"stopReason":"handoff"}'
SAID = (
    '{"isSidechain":false,"message":{"content":[{"type":"tool_use","input":{"usage":{"input_tokens"'
    ':9000000}}}],"usage":{"input_tokens":%d,"cache_creation_input_tokens":20,'
    '"cache_read_input_tokens":3,"output_tokens":500,"iterations":[]}},"type":"assistant"}'
)
NOISE = '{"type":"user","toolUseResult":{"usage":{"input_tokens":999999}},"text":"%s"}'


@pytest.fixture
def session(brakes, tmp_path):
    """A transcript, and the rule by which its launch is stopped."""
    path = tmp_path / "session.jsonl"

    def begun(*lines, limit="100", own="", brake=None):
        path.write_text("".join(f"{line}\n" for line in lines))
        brake = brake or claude_harness.brake(interactive=False)
        brake = msgspec.structs.replace(brake, answer=ANSWER.decode())
        brakes.rule("launch-1").write_bytes(BrakeRule(brake, limit, own).render())
        brakes.taken("launch-1").unlink(missing_ok=True)
        brakes.braked("launch-1").unlink(missing_ok=True)
        return json.dumps({"session_id": "s", "transcript_path": str(path)}).encode()

    return begun


def test_a_launch_is_stopped_where_its_window_is_so_full(brakes, run, session):
    """At a boundary of that launch, by what its last turn has used, and nowhere else."""
    mark = brakes.braked("launch-1")
    for used, stops in ((76, False), (77, True)):
        told = session(SAID % 5, SAID % used, NOISE % "x")
        answer = run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1")
        assert (answer == ANSWER, mark.exists()) == (stops, stops), used
    assert mark.read_bytes().startswith(b"100 0\n")
    told = session(SAID % 500)
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-2") == b""
    assert run(told, "PostToolBatch") == b""
    assert run(told, "PostToolUse", REKINDLE_LAUNCH="launch-1") == b""
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="../launch-1") == b""
    below = told.replace(b'"session_id"', b'"agent_id":"a1","session_id"')
    assert run(below, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == b""
    assert not mark.exists()


def test_a_message_for_the_agent_is_given_once(brakes, run, session):
    """At its event, to the session itself, and not if the session is stopped."""
    told = session(SAID % 5)
    path = json.loads(told)["transcript_path"]
    brake = claude_harness.brake(interactive=False)
    notice = render_notice(brake, path, "you repeat yourself", "first")
    brakes.notice("launch-1").write_bytes(notice)

    def ask(payload, event="PostToolBatch", launch="launch-1"):
        return run(payload, event, REKINDLE_LAUNCH=launch)

    assert ask(told, "PostToolUse") == b""
    assert ask(told, launch="launch-2") == b""
    assert ask(told.replace(b'"session_id"', b'"agent_id":"a1","session_id"')) == b""
    assert ask(told.replace(b"session.jsonl", b"other.jsonl")) == b""
    assert ask(session(SAID % 500)) == ANSWER
    assert not brakes.told("launch-1", "first").exists()
    assert json.loads(ask(session(SAID % 5))) == {
        "hookSpecificOutput": {
            "hookEventName": "PostToolBatch",
            "additionalContext": "you repeat yourself",
        }
    }
    assert brakes.told("launch-1", "first").exists()
    assert ask(told) == b""
    brakes.notice("launch-1").write_bytes(render_notice(brake, path, "é" * 9_000, "second"))
    assert json.loads(ask(told))["hookSpecificOutput"]["additionalContext"] == "é" * 9_000
    assert ask(told) == b""
    brakes.forget()
    assert not brakes.told("launch-1", "first").exists()
    assert not brakes.notice("launch-1").exists()


def test_a_rule_that_an_agent_wrote_stops_nothing_and_answers_nothing(agent, brakes, run, session):
    """Hooks read rules outside the workspace alone."""
    told = session(SAID % 500)
    planted = agent.folder("trades").run / "brake-launch-1"
    brakes.rule("launch-1").rename(planted)
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == b""
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1", REKINDLE_RULES="") == b""
    planted.rename(brakes.rule("launch-1"))
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == ANSWER


def test_a_transcript_that_is_behind_is_waited_for(agent, program, session, brakes, tmp_path):
    """The CLI writes a turn a moment after its calls are over: the text there is older."""
    told = json.loads(session(SAID % 5))
    told["tool_calls"] = [{"tool_use_id": "toolu_7", "tool_response": "x"}]
    argv = [sys.executable, "-I", "-S", str(program), "claude-code", "PostToolBatch"]
    argv.append(str(agent.folder("trades").path))
    late = (SAID % 500).replace('"type":"tool_use"', '"type":"tool_use","id":"toolu_7"')
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"REKINDLE_LAUNCH": "launch-1", "REKINDLE_RULES": str(brakes.folder)},
    ) as hooked:
        hooked.stdin.write(json.dumps(told, separators=(",", ":")).encode())
        hooked.stdin.close()
        with (tmp_path / "session.jsonl").open("a") as file:
            file.write(f"{late}\n")
        assert hooked.stdout.read() == ANSWER
        assert hooked.wait() == 0


def test_the_last_turn_is_found_behind_megabytes(run, session):
    told = session(SAID % 500, *(NOISE % ("x" * 900_000) for _ in range(4)))
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == ANSWER


def test_uncounted_tokens_stop_nothing(run, session, tmp_path):
    for told in (
        session(),
        session('{"type":"assistant","isSidechain":false,"message":{}}'),
        session((SAID % 500).replace('"isSidechain":false', '"isSidechain":true')),
        session(SAID % 500, own="/another/session.jsonl"),
        session(SAID % 500, limit="nonsense"),
    ):
        assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == b""
    told = session(SAID % 500)
    (tmp_path / "session.jsonl").unlink()
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == b""


def test_who_is_asked_to_hand_off_is_stopped_however_full_it_is(run, session):
    told = session(limit="0")
    assert run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1") == ANSWER


COUNT = (
    '{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":'
    '{"total_tokens":9000},"last_token_usage":{"input_tokens":1,"total_tokens":%d},'
    '"model_context_window":1000}}}'
)


def test_a_line_may_tell_the_window_too(agent, brakes, run, session):
    """The limit is then a part of it."""
    brake = codex_harness.brake(interactive=False)
    for used, stops in ((799, b""), (800, ANSWER)):
        told = session(COUNT % 5, COUNT % used, limit="80%", brake=brake)
        assert run(told, "PreToolUse", REKINDLE_LAUNCH="launch-1") == stops
    assert brakes.braked("launch-1").read_bytes().startswith(b"800 1000\n")
    assert list((agent.folder("trades").run / "inbox").glob("*")) == [], (
        "it is not a record of ours"
    )


CALLED = '{"id":"1","type":"gemini","content":"","tokens":{"input":%d,"output":5},"model":"m"%s}'
OVER = ',"toolCalls":[{"args":{"tokens":{"input":%d}}}]'
SNAPSHOT = '{"$set":{"messages":[' + CALLED % (500, OVER % 500) + "]}}"


@pytest.mark.parametrize("limit", ["100", "0"])
def test_while_a_call_is_under_way_nothing_is_stopped(run, session, limit):
    """A sub-agent's boundary looks like the session's: but its call is not over in there."""
    brake = gemini_harness.brake(interactive=False)
    full, over = CALLED % (100, ""), CALLED % (100, OVER % 1)
    for lines, stops in (
        ([full, over], True),
        ([full, over, '{"type":"user"}', '{"$set":{"lastUpdated":"now"}}'], True),
        ([over, full], False),
        ([full], False),
        ([over, SNAPSHOT], False),  # compacted, or started again: the earlier count is void
        ([], False),
    ):
        told = session(*lines, limit=limit, brake=brake)
        answer = run(told, "BeforeModel", REKINDLE_LAUNCH="launch-1")
        assert (answer == ANSWER) == stops, lines


def test_what_a_call_was_given_is_not_counted(run, session):
    told = session(CALLED % (99, OVER % 100), brake=gemini_harness.brake(interactive=False))
    assert run(told, "BeforeModel", REKINDLE_LAUNCH="launch-1") == b""


IN_A_BROKEN_INBOX = """
import os, subprocess, sys, time
program, folder, fault, rounds = sys.argv[1:]
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
elif fault == "gone":
    os.rmdir(inbox)
data = sys.stdin.buffer.read()
times = []
for _ in range(int(rounds)):
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-I", "-S", program, "claude-code", "PostToolUse", folder],
        input=data, capture_output=True,
    )
    times.append(time.perf_counter() - start)
    if ended.returncode or ended.stderr:
        break
print(ended.returncode, min(times), ended.stderr)
"""


def run_with_inbox(agent, program, fault, rounds=1):
    """Run the hook with an inbox that has this fault; return the shortest time that it took."""
    place = str(agent.folder("trades").path)
    ended = subprocess.run(
        [
            *("unshare", "-m", sys.executable, "-c", IN_A_BROKEN_INBOX),
            *(str(program), place, fault, str(rounds)),
        ],
        input=json.dumps(payload("toolu_spooled")).encode(),
        capture_output=True,
        check=True,
    )
    code, taken, complaints = ended.stdout.decode().split(maxsplit=2)
    assert (code, complaints.strip()) == ("0", "b''")
    return float(taken)


mounts = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
faults = pytest.mark.parametrize("fault", ["full", "read-only", "gone"])


@mounts
@faults
@pytest.mark.bench
def test_an_inbox_that_cannot_be_written_costs_no_time(agent, program, fault):
    """The best of five takes at most three times as long as with an inbox that works."""
    working = run_with_inbox(agent, program, "none", 5)
    assert run_with_inbox(agent, program, fault, 5) <= 3 * working


@mounts
@faults
def test_an_inbox_that_cannot_be_written_costs_no_record(agent, program, fault):
    """The hook exits with 0; the record is spooled, and the next fold brings it in."""
    place = agent.folder("trades").path
    run_with_inbox(agent, program, fault)
    assert len(inbox.list_spooled_segments(place)) == 1
    assert [beat.call for beat in folded(agent, events.Heartbeat)] == ["toolu_spooled"]
    assert inbox.list_spooled_segments(place) == []


def test_a_spool_that_is_not_ours_alone_is_not_used(tmp_path, monkeypatch):
    """A folder that others may write to, or a link, could lead anywhere."""
    for name, make in (
        ("open", lambda path: path.mkdir(mode=0o755)),
        ("link", lambda path: path.symlink_to(tmp_path)),
    ):
        place = tmp_path / name
        make(place)
        monkeypatch.setattr(record_writer, "spool_folders", lambda place=place: (str(place),))
        record_writer.spool_record("/some/agent", b"\n1 hook\n")
        assert list(place.glob("*.seg")) == []


def test_the_spool_is_where_no_sandboxed_agent_writes(agent, tmp_path, monkeypatch):
    """A record in /tmp counts for nothing; without a folder in memory the user's own is used."""
    in_memory, own = record_writer.spool_folders()
    assert in_memory == f"/run/user/{os.getuid()}/rekindle"
    assert own == f"{user_folder.find_user_folder()}/spool"
    monkeypatch.setattr(
        record_writer, "spool_folders", lambda: (str(tmp_path / "absent/rekindle"), own)
    )
    folder = agent.folder("trades").path
    record = record_event.compose_record(
        "claude-code", "PostToolUse", "", json.dumps(payload()).encode(), 9
    )
    user_folder.make_user_folder()
    record_writer.spool_record(str(folder), record)
    (kept,) = inbox.list_spooled_segments(folder)
    assert kept.path.parent == Path(own)
    kept.path.unlink()
    before = Path(f"/tmp/rekindle-{os.getuid()}")  # noqa: S108 - where the spool was once
    is_new = not before.exists()
    before.mkdir(mode=0o700, exist_ok=True)
    planted = before / f"{record_writer.spool_prefix(str(folder))}1.seg"
    planted.write_bytes(record)
    assert agent.read("trades").pending == ()
    planted.unlink()
    if is_new:
        before.rmdir()


def test_a_spool_that_others_could_write_is_not_read(agent, tmp_path, monkeypatch):
    """Records planted in a folder that others can write do not acknowledge anything."""
    place = tmp_path / "spool"
    place.mkdir(mode=0o700)
    monkeypatch.setattr(record_writer, "spool_folders", lambda: (str(place),))
    folder = agent.folder("trades").path
    planted = record_event.compose_record(
        "claude-code", "PostToolUse", "", json.dumps(payload()).encode(), 9
    )
    (place / f"{record_writer.spool_prefix(str(folder))}1.seg").write_bytes(planted)
    assert len(agent.read("trades").pending) == 1
    place.chmod(0o777)
    assert agent.read("trades").pending == ()
    assert folded(agent, events.Heartbeat) == []


def test_whatever_goes_wrong_it_ends_with_0(program, tmp_path):
    """Without arguments, input or a folder it exits with 0 and no output."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    hook_argv = [sys.executable, "-I", "-S", str(program)]
    for argv in (
        hook_argv,
        [*hook_argv, "x"],
        [sys.executable, "-c", script, *hook_argv, "a", "b"],
    ):
        ended = subprocess.run(
            argv,
            cwd=gone if "-c" in argv else tmp_path,
            input=b"",
            capture_output=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_segment_that_is_folded_meanwhile_is_not_written(agent, monkeypatch):
    """Between open and lock the fold may have removed it: the record goes into the next."""
    place = agent.folder("trades").inbox
    first = place / "00000000000000000001-00.seg"
    first.touch(mode=0o600)
    locks = []

    def removed_meanwhile(fd, how):
        if not locks:
            first.unlink()
        locks.append(how)

    monkeypatch.setattr(record_writer.fcntl, "flock", removed_meanwhile)
    assert record_writer.append_record(str(place), b"\nrecord\n")
    (second,) = place.iterdir()
    assert second.read_bytes() == b"\nrecord\n"


def test_an_inbox_that_hangs_costs_no_record(program, agent):
    """A lock that is never released: the record is spooled, and the next fold brings it in."""
    segment = agent.folder("trades").inbox / "0.seg"
    holder = os.open(segment, os.O_RDWR | os.O_CREAT, 0o600)
    record_writer.fcntl.flock(holder, record_writer.fcntl.LOCK_EX)
    place = agent.folder("trades").path
    subprocess.run(
        [sys.executable, "-I", "-S", str(program), "claude-code", "PostToolUse", str(place)],
        input=json.dumps(payload("toolu_hung")).encode(),
        check=True,
    )
    os.close(holder)
    assert [beat.call for beat in folded(agent, events.Heartbeat)] == ["toolu_hung"]


def test_a_spool_is_of_one_agent_alone(tmp_path, monkeypatch):
    """An agent whose name begins like another's does not take its records."""
    place = tmp_path / "spool"
    monkeypatch.setattr(record_writer, "spool_folders", lambda: (str(place),))
    record_writer.spool_record("/p/.rekindle/agents/trades-eu", b"\nrecord\n")
    assert inbox.list_spooled_segments(Path("/p/.rekindle/agents/trades")) == []
    assert len(inbox.list_spooled_segments(Path("/p/.rekindle/agents/trades-eu"))) == 1


@pytest.mark.parametrize("linked", ["run", "run/inbox"])
def test_a_link_among_the_folders_is_not_followed(agent, run, tmp_path, linked):
    """A foreign project must not have our prompts written elsewhere."""
    outside = tmp_path / "outside"
    (outside / "inbox").mkdir(parents=True)
    there = agent.folder("trades").path / linked
    shutil.rmtree(there)
    there.symlink_to(outside if linked == "run" else outside / "inbox")
    run(payload())
    assert [path for path in outside.rglob("*") if path.is_file()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")
def test_a_foreign_agent_above_is_not_ours(agent, run, tmp_path):
    """An agent found from the session's folder must be our own; a named one may be anyone's."""
    os.chown(agent.folder("trades").path, 1234, -1)
    run(payload("toolu_1"), folder="", cwd=tmp_path)
    assert folded(agent, events.Heartbeat) == []
    run(payload("toolu_2"))
    assert len(folded(agent, events.Heartbeat)) == 1


def hostile(rng: random.Random) -> bytes:
    """A malicious payload."""
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
            lambda: json.dumps(
                payload(tool_input="x" * rng.choice([9, 9_999] * 50 + [BIG]))
            ).encode(),
            lambda: b'{"session_id":"a","session_id":["b"],"tool_use_id":NaN}',
            lambda: json.dumps(payload(rng.choice([None, 5, [], {}]), prompt=[1])).encode(),
        )
    )()


@pytest.mark.torture
def test_no_payload_breaks_its_reader(agent):
    """It becomes one record, which the harness reads as an event, nothing, or a reason."""
    rng = random.Random(SEED)
    harnesses = {claude_harness.NAME: claude_harness.read_hook}
    read = refused = 0
    for _ in range(100_000 if WHOLE else 5_000):
        event = rng.choice(
            [
                "SessionStart:startup",
                "SessionStart:compact",
                "SessionStart:../x y",
                "PostToolUse",
                "UserPromptSubmit",
                "PreCompact",
                "SessionEnd",
            ]
        )
        data = hostile(rng)
        launch = rng.choice(["", "l1", "../x", "visitor", "a b", "\n"])
        process = rng.choice(["", "1.2.b", "9" * 64, "9" * 65, "1 2", "-", "..", "\n1 hook"])
        cut = len(data) + rng.choice([0, 0, 1])
        record = record_event.compose_record(
            "claude-code", event, launch, data, cut, process=process
        )
        assert record.count(b"\n") == 2
        try:
            found = inbox.InboxRecord("1.seg", 1, record.strip(b"\n")).event(harnesses)
        except RekindleError:
            refused += 1
        else:
            read += found is not None and bool(events.render(found))
    assert read > 100
    assert refused > 100


@pytest.mark.torture
def test_no_payload_breaks_the_program(agent, run, tmp_path):
    """It always exits with 0 and no output, and writes no file outside the agent's folder."""
    (tmp_path / "rekindle.yaml").write_text("version: 1\nagents: {trades: {harness: claude-code}}")
    rng = random.Random(SEED)
    before = {path for path in tmp_path.rglob("*") if "inbox" not in path.parts}
    for _ in range(500 if WHOLE else 40):
        assert run(hostile(rng), rng.choice(["SessionStart:startup", "PostToolUse"])) == b""
    after = {path for path in tmp_path.rglob("*") if "inbox" not in path.parts}
    assert after == before
    with agent.writer("trades") as writer:
        writer.fold()
    assert agent.read("trades").pending == ()
    assert inbox.list_segments(agent.folder("trades").inbox) == []


def test_a_disk_that_hangs_is_given_up(program, agent):
    """An inbox whose lock is never released does not hold the agent."""
    segment = agent.folder("trades").inbox / "0.seg"
    holder = os.open(segment, os.O_RDWR | os.O_CREAT, 0o600)
    record_writer.fcntl.flock(holder, record_writer.fcntl.LOCK_EX)
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
    assert taken >= timeouts.PATIENCE_SECONDS


def test_a_person_s_session_beside_a_supervised_one_is_marked(agent, run):
    """A visitor while a supervisor lives and only then; never primed, never a sign of life."""
    with agent.supervising("trades"):
        assert run(payload(), "SessionStart:startup") == b""
        run(payload("toolu_1"))
        run(payload("toolu_2"), REKINDLE_LAUNCH="launch-1")
    run(payload("toolu_3"))
    (started,) = folded(agent, events.SessionStarted)
    assert started.visitor
    assert started.launch == ""
    beats = {beat.call: beat.visitor for beat in folded(agent, events.Heartbeat)}
    assert beats == {"toolu_1": True, "toolu_2": False, "toolu_3": False}


def test_a_supervisor_is_seen_also_after_its_folder_was_wiped(agent):
    """The hook finds the lock outside the folder without any of our modules."""
    folder = agent.folder("trades")
    outside = supervisor_locks.find_outer_lock(agent.root.project, "trades")
    assert session_agent.find_outer_lock(str(folder.path)) == str(outside.path)
    assert not session_agent.is_supervised(str(folder.path))
    with agent.supervising("trades"):
        folder.supervisor.unlink()
        assert session_agent.is_supervised(str(folder.path))
    assert not session_agent.is_supervised(str(folder.path))
    assert session_agent.find_outer_lock("/gone/.rekindle/agents/trades") == ""


def test_only_a_start_names_its_process(agent, run):
    """Pid, start and boot identify it; a tool call does not pay for that."""
    run(payload(), "SessionStart:resume", CLAUDE_PID=str(os.getpid()))
    run(payload())
    first, second = agent.read("trades").pending
    words = [record.line.split(b" ", 8) for record in (first, second)]
    pid, _, rest = words[0][5].partition(b".")
    assert pid == str(os.getpid()).encode()
    assert rest.count(b".") == 2
    assert words[1][5] == b"-"
    (started,) = folded(agent, events.SessionStarted)
    assert started.process.encode() == words[0][5]


def test_codex_started_from_claude_code_is_itself(agent, run, tmp_path):
    """The process and the project in its environment belong to another program."""
    below = agent.folder("trades").path.parents[2]
    inherited = {"CLAUDE_PID": "1", "CLAUDE_PROJECT_DIR": str(tmp_path / "other")}
    run(payload(), "SessionStart:resume", harness="codex", folder="", cwd=below, **inherited)
    (started,) = folded(agent, events.SessionStarted)
    assert started.process.partition(".")[0] == str(os.getpid())
    assert started.harness == "codex"


@pytest.mark.parametrize("size", [5_000, 6_143, 6_144, 8_191, 8_192, 8_193, 50_000, 3_000_000])
@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_a_long_tool_call_keeps_its_id_and_little_else(agent, run, size, event):
    """Its two ends contain what is needed, wherever the bulk is."""
    whole = payload("toolu_x", tool_input={"command": "cat big"})
    last = whole.pop("tool_use_id")
    filler = size - len(json.dumps(whole | {"tool_response": "", "tool_use_id": last}))
    run(whole | {"tool_response": "x" * max(0, filler), "tool_use_id": last}, event)
    (record,) = agent.read("trades").pending
    assert len(record.line) <= 8_192 + 200
    assert (b" cut:" in record.line) == (size > 8_192)
    (beat,) = folded(agent, events.Heartbeat)
    assert (beat.call, beat.tool, beat.session) == ("toolu_x", "Bash", "a424fede-8065")


HANGS = """
import fcntl, os, signal, sys
lock = os.open(sys.argv[1] + "/held", os.O_CREAT | os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(1, b"begun")
while True:
    signal.pause()
"""


@pytest.fixture
def bare_python(tmp_path_factory) -> Path:
    """An interpreter in which Rekindle is not installed, or not any more."""
    place = tmp_path_factory.mktemp("bare")
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(place)]
    subprocess.run(command, check=True)
    return place


def primed_by(place, program, agent):
    """Run the hook at a session's start with that interpreter."""
    command = [str(place / "bin/python"), "-I", "-S", str(program), "claude-code"]
    start = time.perf_counter()
    ended = subprocess.run(
        [*command, "SessionStart:startup", str(agent.folder("trades").path)],
        input=json.dumps(payload()).encode(),
        capture_output=True,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    return ended, time.perf_counter() - start


def test_without_the_package_a_session_still_starts(agent, program, bare_python):
    """After an upgrade of Python the hook exits with 0 and no output, and keeps the start."""
    ended, _ = primed_by(bare_python, program, agent)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert len(folded(agent, events.SessionStarted)) == 1


def test_a_primer_that_never_comes_is_given_up(agent, bare_python, tmp_path):
    """The hook ends in time with 0, and what it had started is ended with it."""
    (package,) = bare_python.glob("lib/python3*/site-packages")
    (package / "rekindle/wiring").mkdir(parents=True)
    (package / "rekindle/wiring/hook_primer.py").write_text(HANGS)
    source = hook_program.join_source()
    hasty = source.replace(b"PRIMING_SECONDS = 8.0", b"PRIMING_SECONDS = 1.0")
    assert hasty != source
    program = tmp_path / "hook.pyc"
    program.write_bytes(bytecode.compile_program(hasty, "hook.py"))
    ended, taken = primed_by(bare_python, program, agent)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"begun", b"")
    assert taken >= 1.0
    with file_locks.hold_lock(agent.folder("trades").path / "held", 5.0) as lock:
        assert lock is not None  # its holder is gone
    assert len(folded(agent, events.SessionStarted)) == 1


def test_a_session_is_primed_through_the_program(agent, run, tmp_path):
    """A start, a clear, however large; not a resume, not a fork, not a launch, not twice."""
    (tmp_path / "rekindle.yaml").write_text("version: 1\nagents: {trades: {harness: claude-code}}")
    own = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    with own.writer("trades", take_over=True) as writer:
        writer.commit_relay(relay.parse(RELAY), by="person")
    trust_checks.accept_folder(agent.root.project)
    assert RELAY.strip().encode() in run(payload(), "SessionStart:startup")
    assert run(payload(), "SessionStart:startup") == b""  # the other of two hooks
    assert RELAY.strip().encode() in run(payload(), "SessionStart:clear")
    for event, environment in (
        ("SessionStart:resume", {}),
        ("SessionStart:fork", {}),
        ("SessionStart:startup", {"REKINDLE_LAUNCH": "launch-1"}),
        ("SessionStart:clear", {"REKINDLE_LAUNCH": "launch-1"}),
        ("UserPromptSubmit", {}),
    ):
        assert run(payload(session_id="another"), event, **environment) == b"", event
    big = payload(session_id="big", source="x" * 300_000)
    assert RELAY.strip().encode() in run(big, "SessionStart:startup")


def test_a_fifo_in_our_folder_keeps_no_hook_waiting(tmp_path):
    """A hook runs inside a tool call: it opens nothing that could block."""
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run/supervisor")
    os.mkfifo(tmp_path / "run/rule")
    script = (
        "import sys; from rekindle.hook import host_facts, session_agent; folder = sys.argv[1];"
        "assert not session_agent.is_supervised(folder);"
        "assert host_facts.read_file(f'{folder}/run/rule', 10) == b''"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=10)


def test_a_link_in_the_place_of_a_mark_is_not_followed(brakes, run, session, tmp_path):
    """The agent knows its launch: it must not have us write what it has said elsewhere."""
    outside = tmp_path / "outside"
    told = session(SAID % 500)
    brakes.braked("launch-1").symlink_to(outside)
    run(told, "PostToolBatch", REKINDLE_LAUNCH="launch-1")
    assert not outside.exists()


def test_no_link_in_the_path_of_an_inbox_is_followed(agent, tmp_path):
    """This includes one that was created after the hook has checked."""
    elsewhere = tmp_path / "elsewhere"
    agent.folder("trades").run.rename(elsewhere)
    agent.folder("trades").run.symlink_to(elsewhere)
    before = list((elsewhere / "inbox").iterdir())
    inbox = str(agent.folder("trades").inbox)
    assert not record_writer.append_record(inbox, b"\nrecord\n", depth=record_writer.INBOX_DEPTH)
    assert list((elsewhere / "inbox").iterdir()) == before
