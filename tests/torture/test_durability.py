"""The order of fsyncs, which kill -9 cannot show.

A power loss takes what was written and not confirmed. So the system calls of real commands are
listed, and compared with the order that the promises need.
"""

import os
from pathlib import Path

import click
import pytest

from prerequisites import needs
from rekindle import config
from rekindle.cli import main
from rekindle.documents import events
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.wiring.open_store import open_store
from torture.tracing import Call, Say, obstacle, trace

pytestmark = needs(obstacle())

for every in main.COMMANDS:
    main.app.get_command(click.Context(main.app), every)

SYNC = {"fsync", "fdatasync"}
RENAME = {"rename", "renameat", "renameat2"}
COMMANDS = {
    "loops add": ["loops", "add", "new", "text"],
    "resolve": ["resolve", "known", "done"],
    "relay set": ["relay", "set", "relay.md"],
    "relay set, trimmed": ["relay", "set", "long.md"],
    "fold": ["doctor", "--fix"],
    "init": ["init", "--yes", "--agent", "second"],
}


@pytest.fixture
def project(tmp_path) -> Path:
    """Create an agent with a loop, an unconfirmed heartbeat, and two relays to set."""
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents:\n  trades: {harness: command, command: 'true'}\n"
    )
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    directive = "## Next Action\nGo on\n"
    (tmp_path / "relay.md").write_text(directive)
    (tmp_path / "long.md").write_text(directive + "## Log\n" + "- one more line\n" * 900)
    store = opened(tmp_path)
    store.create("trades")
    store.submit("trades", events.LoopAdded(ts=clock.read_clock(), id="known", text="text"))
    beat = events.Heartbeat(ts=clock.read_clock(), tool="Bash")
    inbox.append_records(store.folder("trades").inbox, [beat], durable=False)
    return tmp_path


def opened(project: Path) -> FileStore:
    return open_store(config.load_project(project))


def calls_of(project: Path, arguments: list[str]) -> list[Call]:
    """The system calls of a command, up to its acknowledgement."""

    def work(say: Say) -> None:
        os.chdir(project)
        sink = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(sink, descriptor)
        if main.run(arguments) == 0:
            say(b"acknowledged")

    outcome, calls = trace(work, paths=True)
    assert outcome.said == b"acknowledged"
    return calls


def places(calls: list[Call], names: set[str], text: str) -> list[int]:
    return [
        place
        for place, call in enumerate(calls)
        if call.name in names and call.path and text in call.path and call.result != -1
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_write_is_confirmed_before_the_acknowledgement(project, name):
    """After the last write to any file of ours comes an fsync of that file."""
    calls = calls_of(project, COMMANDS[name])
    written: dict[str, int] = {}
    for place, call in enumerate(calls):
        if call.name in {"write", "pwrite64"} and ".rekindle" in (call.path or ""):
            written[str(call.path)] = place
    assert written
    for path, place in written.items():
        assert any(at > place for at in places(calls, SYNC, path)), f"{path} was not confirmed"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_rename_is_of_confirmed_bytes_and_is_confirmed_itself(project, name):
    """Before a rename the new file is fsynced, after it the folder, before anything else is."""
    calls = calls_of(project, COMMANDS[name])
    renames = [place for place, call in enumerate(calls) if call.name in RENAME]
    assert renames
    for place in renames:
        before = [call for call in calls[:place] if call.name in SYNC | {"write"}]
        assert before[-1].name in SYNC
        assert "/.tmp-" in str(before[-1].path)
        after = next(call for call in calls[place:] if call.name in SYNC | {"write"})
        assert after.name in SYNC
        assert Path(str(after.path)) == Path(str(before[-1].path)).parent


@pytest.mark.parametrize("name", ["loops add", "resolve", "relay set"])
def test_a_record_is_confirmed_with_the_name_of_its_segment(project, name):
    """The inbox's file and its folder are fsynced before the fold begins."""
    calls = calls_of(project, COMMANDS[name])
    (record, *_) = places(calls, {"write"}, ".seg")
    segment = next(at for at in places(calls, SYNC, ".seg") if at > record)
    folder = next(at for at in places(calls, SYNC, "/run/inbox") if at > segment)
    assert str(calls[folder].path).endswith("/run/inbox")
    assert folder < min(places(calls, {"write"}, "ops.jsonl"))


def test_a_segment_is_confirmed_before_the_log_says_that_it_is_folded(project):
    """An unconfirmed heartbeat is fsynced before its cursor is logged, and removed after."""
    calls = calls_of(project, COMMANDS["fold"])
    logged = min(places(calls, {"write"}, "ops.jsonl"))
    assert min(places(calls, SYNC, ".seg")) < logged
    confirmed = min(places(calls, SYNC, "ops.jsonl"))
    removed = [at for at, call in enumerate(calls) if call.name in {"unlink", "unlinkat"}]
    assert logged < confirmed < min(removed)


@pytest.mark.parametrize("name", ["loops add", "relay set", "fold"])
def test_the_seal_covers_an_append_before_it_is_made(project, name):
    """The seal is written and fsynced before each write to the log, and again behind it."""
    calls = calls_of(project, COMMANDS[name])
    logged = places(calls, {"write"}, "ops.jsonl")
    written, confirmed = places(calls, {"write"}, "/seal"), places(calls, SYNC, "/seal")
    assert logged
    before = 0
    for at in logged:
        assert any(before < first < then < at for first in written for then in confirmed)
        before = next(done for done in places(calls, SYNC, "ops.jsonl") if done > at)
        assert any(after > before for after in written)


def test_a_new_seal_is_confirmed_with_its_name(tmp_path):
    """A power loss must not leave a log without the seal that was written before it."""
    (tmp_path / "rekindle.yaml").write_text("version: 1\nagents:\n  trades:\n    harness: codex\n")

    def work(say: Say) -> None:
        opened(tmp_path).create("trades")
        say(b"acknowledged")

    _, calls = trace(work, paths=True)
    private = find_private_project(tmp_path).agent("trades").path
    logged = min(places(calls, {"write"}, "ops.jsonl"))
    for folder in (private, private.parent, private.parents[1], private.parents[2]):
        named = [at for at in places(calls, SYNC, str(folder)) if calls[at].path == str(folder)]
        assert min(named) < logged, folder


def test_a_snapshot_forgets_a_segment_only_when_its_removal_is_confirmed(project):
    """The inbox's folder is fsynced between the removal and the snapshot."""

    def work(say: Say) -> None:
        with opened(project).writer("trades") as writer:
            writer.fold()
            writer.snapshot()
        say(b"acknowledged")

    _, calls = trace(work, paths=True)
    removed = max(at for at, call in enumerate(calls) if call.name in {"unlink", "unlinkat"})
    written = min(places(calls, {"write"}, "snapshot.json"))
    assert any(
        removed < at < written and str(calls[at].path).endswith("/run/inbox")
        for at in places(calls, SYNC, "/run/inbox")
    )


def test_a_new_agent_s_folders_are_confirmed(tmp_path):
    """Each folder that is made is fsynced in its parent, and so is a log that is new."""
    (tmp_path / "rekindle.yaml").write_text("version: 1\nagents:\n  trades:\n    harness: codex\n")

    def work(say: Say) -> None:
        opened(tmp_path).create("trades")
        say(b"acknowledged")

    _, calls = trace(work, paths=True)
    synced = {str(calls[at].path) for at in places(calls, SYNC, str(tmp_path))}
    agent = tmp_path / ".rekindle/agents/trades"
    for parent in (tmp_path, tmp_path / ".rekindle", agent.parent, agent, agent / "memories"):
        assert str(parent) in synced, parent
    log = min(places(calls, {"write"}, "ops.jsonl"))
    assert any(at > log and calls[at].path == str(agent) for at in places(calls, SYNC, str(agent)))
