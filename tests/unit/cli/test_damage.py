"""Damaged files of one agent: the messages of commands, and what they never do because of it."""

import contextlib
import json
import os
import socket

import pytest

from rekindle.documents import events
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.stores.log.log_acceptance import seal_log
from rekindle.system import clock, host
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.starting import background_start as wiring

AGENT = "{harness: command, command: ['true'], prompt: PROMPT.md}"
MANIFEST = f"version: 1\nagents:\n  trades: {AGENT}\n  other: {AGENT}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / "PROMPT.md").write_text("Trade.\n")
    accept_folder(tmp_path)
    # The watchdog's decision is what counts here; the tests of `up` start supervisors.
    monkeypatch.setattr(wiring, "start_for_watchdog", lambda *_: "")
    return tmp_path


@pytest.fixture
def store(project):
    made = FileStore(
        project, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    for name in ("trades", "other"):
        made.create(name)
    return made


def say(store, desired):
    store.submit(
        "trades",
        policy.make_desired_event(store.read("trades").projection.run, desired, clock.read_clock()),
    )


def add_loop(store, identity):
    store.submit(
        "trades", open_loops.propose_loop({}, identity, f"text of {identity}", clock.read_clock())
    )


def damage(store, word, *, snapshot=False):
    """Overwrite a line of the log in its place, as a bad sector or an editor would."""
    if snapshot:
        with store.writer("trades") as writer:
            writer.snapshot()
    log = store.folder("trades").log
    lines = log.read_bytes().splitlines(keepends=True)
    (number,) = [place for place, line in enumerate(lines) if word in line]
    lines[number] = b"#" * (len(lines[number]) - 1) + b"\n"
    log.write_bytes(b"".join(lines))
    if not snapshot:
        seal_log(store.folder("trades"))  # as after the operator has accepted it
    return number + 1


def row(rekindle, name):
    code, out, err = rekindle("status", "--json")
    assert code == 0, err
    return next(one for one in json.loads(out)["agents"] if one["agent"] == name)


def watched(rekindle, name):
    code, out, err = rekindle("watch", "--once", "--json")
    assert code == 0, err
    found = json.loads(out)["agents"]
    return next(one for one in found if one["agent"] == name)


class TestLostStop:
    """A stop whose line was damaged is lost; it must not become a start."""

    def test_watch_starts_an_agent_with_a_whole_log(self, store, rekindle):
        say(store, "running")
        assert watched(rekindle, "trades")["started"]

    @pytest.fixture
    def damaged(self, store):
        say(store, "running")
        say(store, "stopped")
        add_loop(store, "later")
        damage(store, b'"stopped"')
        return store

    def test_watch_does_not_start_the_agent(self, damaged, rekindle):
        found = watched(rekindle, "trades")
        assert not found["started"]
        assert "a stop may be among them" in found["words"]

    def test_doctor_names_the_lost_events_and_the_next_command(self, damaged, rekindle):
        code, out, _ = rekindle("doctor")
        assert code == 8
        assert "✗ trades: ops.jsonl has lost events: 3" in out
        assert "rekindle run trades" in out
        assert "✓ other" in out

    def test_status_says_it(self, damaged, rekindle):
        assert row(rekindle, "trades")["may_miss_stop"]
        assert not row(rekindle, "other")["may_miss_stop"]
        assert "a stop may be among them" in rekindle("status", "trades")[1]

    def test_a_snapshot_does_not_hide_it(self, damaged, rekindle):
        with damaged.writer("trades") as writer:
            writer.snapshot()
        assert not watched(rekindle, "trades")["started"]
        assert "has lost events: 3" in rekindle("doctor")[1]

    @pytest.mark.parametrize("word", ["running", "stopped", "restart"])
    def test_the_operator_s_next_command_settles_it(self, damaged, rekindle, word):
        """The watchdog obeys it; doctor still names the loss, as a note."""
        if word == "restart":
            damaged.submit("trades", events.RestartRequested(ts=clock.read_clock()))
        else:
            say(damaged, word)
        assert not row(rekindle, "trades")["may_miss_stop"]
        assert watched(rekindle, "trades")["started"] == (word != "stopped")
        code, out, _ = rekindle("doctor")
        assert (code, "· trades: ops.jsonl has lost events: 3" in out) == (0, True)

    def test_removed_lines_are_a_gap_too(self, store, rekindle):
        say(store, "running")
        for number in range(3):
            add_loop(store, f"l{number}")
        log = store.folder("trades").log
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:2] + lines[4:]))
        seal_log(store.folder("trades"))
        assert not watched(rekindle, "trades")["started"]
        assert "ops.jsonl has lost events: 3 to 4" in rekindle("doctor")[1]

    def test_a_damaged_last_line_is_a_loss_without_a_gap(self, store, rekindle):
        """The next writer would use its number again."""
        say(store, "running")
        say(store, "stopped")
        damage(store, b'"stopped"')
        assert not watched(rekindle, "trades")["started"]
        store.folder("trades").state.unlink()
        add_loop(store, "later")
        assert not watched(rekindle, "trades")["started"]
        assert "damaged lines in ops.jsonl: 1" in rekindle("doctor")[1]

    def test_damage_before_the_snapshot_is_reported(self, store, rekindle):
        """The snapshot still knows the stop."""
        say(store, "running")
        say(store, "stopped")
        for number in range(9):  # the end of the log shows whether a snapshot fits it
            add_loop(store, f"l{number}")
        damage(store, b'"stopped"', snapshot=True)
        assert watched(rekindle, "trades")["words"] == "stopped by the operator"
        assert "has lost events: 3" in rekindle("doctor")[1]

    def test_a_torn_line_is_not_a_loss(self, store, rekindle):
        """Its writer never acknowledged it: the agent is started as after any crash."""
        say(store, "running")
        with store.folder("trades").log.open("ab") as file:
            file.write(b'{"v":1,"seq":3,"ts"')
        add_loop(store, "later")
        assert not row(rekindle, "trades")["may_miss_stop"]
        assert "has lost events" not in rekindle("doctor")[1]


class TestMissingLog:
    """An agent that had a log never looks like a new one."""

    TRACES = ("state.json", "memories/archive")

    @pytest.fixture
    def lost(self, store):
        say(store, "running")
        add_loop(store, "open")
        relay = events.RelayProposed(
            ts=clock.read_clock(), text="## Next Action\nShip\n", by="person"
        )
        store.submit("trades", relay)
        with store.writer("trades") as writer:
            writer.snapshot()
        store.folder("trades").log.unlink()
        return store

    @pytest.mark.parametrize("trace", TRACES)
    def test_each_trace_of_it_is_enough(self, lost, rekindle, trace):
        folder = lost.folder("trades").path
        for other in set(self.TRACES) - {trace}:
            (folder / other).rename(folder.parent / other.replace("/", "-"))
        found = row(rekindle, "trades")
        assert found["state"] == "broken"
        assert "ops.jsonl: is missing" in found["reason"]
        assert "backup" in found["command"]
        assert row(rekindle, "other")["open_loops"] == 0
        assert "0 open" not in rekindle("status", "trades")[1]
        code, out, _ = rekindle("doctor")
        assert code == 8
        assert "✗ trades: ops.jsonl: is missing" in out
        assert not watched(rekindle, "trades")["started"]

    def test_an_empty_log_is_a_missing_one(self, lost, rekindle):
        lost.folder("trades").log.touch()
        assert row(rekindle, "trades")["state"] == "broken"

    def test_nothing_is_written_over_it(self, lost, rekindle):
        code, _, err = rekindle("loops", "add", "next", "text", "-a", "trades")
        assert code == 4
        assert "ops.jsonl" in err
        assert not lost.folder("trades").log.exists()

    def test_a_new_agent_has_no_log_and_that_is_fine(self, store, rekindle):
        store.folder("third").make()
        (store.root.project / "rekindle.yaml").write_text(f"{MANIFEST}  third: {AGENT}\n")
        assert row(rekindle, "third")["open_loops"] == 0


def make_directory(path):
    path.mkdir()
    (path / "inside").touch()


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)  # the whole path may be too long for one


OBJECTS = {
    "directory": make_directory,
    "fifo": os.mkfifo,
    "socket": make_socket,
    "dangling-link": lambda path: path.symlink_to("nowhere"),
    "link-to-zeros": lambda path: path.symlink_to("/dev/zero"),
    "link-to-itself": lambda path: path.symlink_to(path.name),
}
FOLDERS = ("run", "run/inbox", "memories", "memories/archive", "memories/resolved", "transcripts")
PLACES = (
    *FOLDERS,
    "run/.clean-exit",
    "run/.fresh",
    "run/supervisor",
    "run/lock",
    "run/started.json",
    "run/output.log",
    "run/audit.json",
    "run/audit.lock",
    "run/briefing",
    "memories/consensus.md",
    "brief.md",
    "checkpoint.md",
    "ops.jsonl",
    "owner.json",
    "progress.md",
    "resolved.jsonl",
    "state.json",
)


CASES = [
    (place, kind)
    for number, place in enumerate(PLACES)
    for turn, kind in enumerate(OBJECTS)
    if not (kind == "directory" and place in FOLDERS)
    # One object for each place, in turn; the whole table on request.
    and (os.environ.get("REKINDLE_TORTURE") == "whole" or (number + turn) % len(OBJECTS) == 1)
]


class TestUnexpectedObjects:
    """A file of one agent was replaced by something else: only that agent suffers from it."""

    @pytest.fixture
    def replaced(self, store, rekindle):
        say(store, "running")
        add_loop(store, "open")
        relay = events.RelayProposed(
            ts=clock.read_clock(), text="## Next Action\nShip\n", by="person"
        )
        store.submit("trades", relay)
        with store.writer("trades") as writer:
            writer.snapshot()

        def put(place, kind):
            path = store.folder("trades").path / place
            if path.exists():
                path.rename(path.parents[len(place.split("/")) - 1].parent / "moved-away")
            OBJECTS[kind](path)
            return path

        return put

    @pytest.mark.parametrize(("place", "kind"), CASES)
    def test_other_agents_stay_readable(self, replaced, rekindle, place, kind):
        path = replaced(place, kind)
        code, out, err = rekindle("status", "--json")
        assert code == 0, err
        trades, other = json.loads(out)["agents"]
        assert trades["state"] != "broken" or (trades["reason"] and trades["command"])
        assert other["state"] != "broken"
        code, out, err = rekindle("doctor")
        assert code == 8, err
        assert f"✗ trades: {path}: is a" in out
        assert "✓ other" in out
        for words in (
            ("watch", "--once"),
            ("brief", "--all"),
            ("stop", "trades"),
            ("events", "-a", "trades"),
        ):
            code, _, err = rekindle(*words)
            assert code not in {1, 70}, (words, err)
            assert not err or "→" in err, (words, err)


def test_doctor_does_not_send_the_operator_to_doctor(store, rekindle):
    """A log that another program changed is one problem, with the command that continues."""
    say(store, "running")
    (store.folder("trades").path / "ops.jsonl").write_text("not a log\n")
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert out.count("its log was changed by something other than Rekindle") == 1
    assert "`rekindle restart trades`" in out
    assert "→ rekindle doctor" not in out
