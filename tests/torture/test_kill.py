"""kill -9 before every system call of everything that writes.

Each trial runs one real command, in a forked child, on a copy of a prepared agent, and is killed
just before its n-th system call. Then: every file is whole, what was acknowledged is there, no
lock is stuck, and the next command heals everything.

CI tries a seeded sample of the points; `just torture` tries them all.
"""

import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
import pytest

from copies import copy_project
from prerequisites import needs
from rekindle import config
from rekindle.cli import main
from rekindle.documents import events, relay
from rekindle.policy.projection import open_loops
from rekindle.policy.settings import runtime_settings
from rekindle.stores.files import (
    FileStore,
    folder_check,
)
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.processes import launch_processes
from rekindle.wiring.open_store import open_store
from torture.tracing import Say, count, kill_before, obstacle

pytestmark = [
    pytest.mark.torture,
    needs(obstacle()),
]

for every in main.COMMANDS:  # commands are imported when they are called: here, before any count
    main.app.get_command(click.Context(main.app), every)

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SAMPLE = 63
"""Points of each scenario that CI tries; there are ten scenarios."""
SEED = 20260409

OLD = "## Current Phase\nOne\n\n## Next Action\nDo the first thing\n"
NEW = "## Current Phase\nTwo\n\n## Next Action\nDo the second thing\n"
LONG = NEW + "\n## What We Did This Cycle\n" + "- did one more thing with care\n" * 400


@dataclass(frozen=True)
class Scenario:
    prepare: Callable[[FileStore], None]
    work: Callable[[Path], int]
    """Runs in the child, in the project's folder; 0 is its acknowledgement."""
    happened: Callable[[FileStore], bool]
    """Whether its acknowledged effect is there."""


def command(*arguments: str) -> Callable[[Path], int]:
    return lambda _project: main.run(list(arguments))


def alone(work: Callable[[Path], int]) -> Callable[[Path], int]:
    """Do the work as if no other process ran: how many calls a search takes would vary."""

    def run(project: Path) -> int:
        launch_processes._list_table = dict  # in a forked child
        return work(project)

    return run


def relay_text(store: FileStore) -> str:
    """The relay that counts, folded or not."""
    seen = store.read("trades")
    if seen.proposed:
        return seen.proposed.text
    standing = seen.committed.documents["relay"]
    return (store.archived("trades", standing.path) or b"").decode()


def with_relay(store: FileStore) -> None:
    with store.writer("trades") as writer:
        writer.commit_relay(relay.parse(OLD), by="agent")


def with_loop(store: FileStore) -> None:
    with_relay(store)
    store.submit("trades", open_loops.propose_loop({}, "known", "A known loop", clock.read_clock()))


def with_pending(store: FileStore) -> None:
    """Records that were acknowledged while the writer was away."""
    with_loop(store)
    known = store.read("trades").projection.loops
    pending = [
        events.Heartbeat(ts=clock.read_clock(), tool="Bash"),
        open_loops.propose_loop(known, "pending", "Waits in the inbox", clock.read_clock()),
        open_loops.resolve_loop(known, "known", "done elsewhere", clock.read_clock()),
        events.RelayProposed(ts=clock.read_clock(), text=NEW, by="agent"),
    ]
    inbox.append_records(
        store.folder("trades").inbox, [one for one in pending if one], durable=True
    )


def with_edit(store: FileStore) -> None:
    with_relay(store)
    store.folder("trades").document("relay").write_text(NEW)


def with_rubbish(store: FileStore) -> None:
    with_relay(store)
    store.folder("trades").document("relay").write_text("rubbish")


def is_open(identity: str) -> Callable[[FileStore], bool]:
    return lambda store: store.read("trades").projection.loops[identity].is_open


def is_resolved(identity: str) -> Callable[[FileStore], bool]:
    return lambda store: not store.read("trades").projection.loops[identity].is_open


def take_snapshot(project: Path) -> int:
    with open_store(config.load_project(project)).writer("trades") as writer:
        writer.fold()
        writer.snapshot()
    return 0


SCENARIOS = {
    "relay commit": Scenario(
        with_relay,
        command("relay", "set", "new.md"),
        lambda store: "second thing" in relay_text(store),
    ),
    "relay commit with trimming and archive": Scenario(
        with_relay,
        command("relay", "set", "long.md"),
        lambda store: "second thing" in relay_text(store),
    ),
    "first relay": Scenario(
        lambda _store: None,
        command("relay", "set", "new.md"),
        lambda store: "second thing" in relay_text(store),
    ),
    "resolve": Scenario(with_loop, command("resolve", "known", "done"), is_resolved("known")),
    "loops add": Scenario(with_loop, command("loops", "add", "new", "A new loop"), is_open("new")),
    "stop": Scenario(
        with_loop,
        alone(command("stop", "trades")),
        lambda store: store.read("trades").projection.run.desired == "stopped",
    ),
    "fold": Scenario(with_pending, command("doctor", "--fix"), is_open("pending")),
    "fold and snapshot": Scenario(with_pending, take_snapshot, is_open("pending")),
    "an edit is adopted": Scenario(
        with_edit,
        command("doctor", "--fix"),
        lambda store: "second thing" in relay_text(store),
    ),
    "an edit is set aside": Scenario(
        with_rubbish,
        command("doctor", "--fix"),
        lambda store: "first thing" in relay_text(store),
    ),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Callable[[str], Path]:
    """A project as each scenario finds it, made once."""
    made: dict[str, Path] = {}

    def prepare(name: str) -> Path:
        if name not in made:
            project = tmp_path_factory.mktemp("prepared")
            (project / "rekindle.yaml").write_text(
                "version: 1\nagents:\n  trades: {harness: command, command: 'true'}\n"
            )
            (project / "PROMPT.md").write_text("Ship it.\n")
            (project / "new.md").write_text(NEW)
            (project / "long.md").write_text(LONG)
            store = open_store(config.load_project(project))
            store.create("trades")
            SCENARIOS[name].prepare(store)
            made[name] = project
        return made[name]

    return prepare


def in_child(scenario: Scenario, project: Path) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        if in_silence(scenario, project) == 0:
            say(b"acknowledged")

    return work


def in_silence(scenario: Scenario, project: Path) -> int:
    """Run the command; its words go nowhere, its acknowledgement is its exit code."""
    os.chdir(project)
    sink = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(sink, descriptor)
    return scenario.work(project)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_anywhere_loses_nothing(prepared, tmp_path, name):
    """Killed before any system call: nothing torn, nothing acknowledged lost, no lock stuck."""
    assert sweep(name, SCENARIOS[name], prepared(name), tmp_path) > 0


def test_the_sample_has_five_hundred_points(prepared, tmp_path):
    """The sample of CI, over all scenarios, has at least five hundred kills."""
    tried = 0
    for name, scenario in SCENARIOS.items():
        project = tmp_path / "project"
        restore(prepared(name), project)
        tried += min(SAMPLE, count(in_child(scenario, project)))
    assert tried >= 500


def sweep(
    name: str,
    scenario: Scenario,
    original: Path,
    scratch: Path,
    *,
    whole: bool = WHOLE,
    from_the_end: bool = False,
) -> int:
    project = scratch / "project"
    # Once for warmth: whatever the first trial would import must not change the count.
    restore(original, project)
    count(in_child(scenario, project))
    examine(f"{name}, not killed", scenario, project, b"acknowledged")
    restore(original, project)
    points = count(in_child(scenario, project))
    assert happened(scenario, project), f"{name} does nothing if it is not killed"
    wanted = list(range(1, points + 1))
    if not whole and points > SAMPLE:
        wanted = sorted(random.Random(f"{SEED}{name}").sample(wanted, SAMPLE))
    for point in reversed(wanted) if from_the_end else wanted:
        restore(original, project)
        outcome = kill_before(in_child(scenario, project), point)
        assert outcome.killed_at == point, f"{name}: the kill before call {point} did not happen"
        examine(f"{name}, killed before call {point} of {points}", scenario, project, outcome.said)
    print(f"\n{name}: {len(wanted)} kills at {points} points, 0 torn, 0 lost, 0 stuck")
    return len(wanted)


def restore(original: Path, project: Path) -> None:
    copy_project(original, project)


def happened(scenario: Scenario, project: Path) -> bool:
    try:
        return scenario.happened(open_store(config.load_project(project)))
    except KeyError:
        return False


def examine(where: str, scenario: Scenario, project: Path, said: bytes) -> None:
    store = open_store(config.load_project(project))
    folder = store.folder("trades")
    nothing_torn(where, store)
    condition = store.read("trades").condition
    assert condition == "sealed", f"{where}: the log passes for {condition}"
    if said == b"acknowledged":
        assert happened(scenario, project), f"{where}: acknowledged, but lost"
    survivors = store.read("trades").projection
    # The next command heals, and loses nothing that a reader saw before it.
    store.submit(
        "trades",
        open_loops.propose_loop(survivors.loops, "healer", "next", clock.read_clock()),
        take_over=False,
    )
    healed = store.read("trades")
    assert healed.pending == (), f"{where}: the next command left records unfolded"
    assert set(survivors.loops) <= set(healed.committed.loops), f"{where}: a loop was lost"
    problems = [one.what for one in store.inspect("trades") if not one.is_note]
    assert problems == [], f"{where}: not healed: {problems}"
    assert folder_check.compare_document(
        folder, "relay", healed.committed.documents.get("relay")
    ) in {
        "clean",
        "none",
    }, where
    numbers = [event.seq for event in store.events_since("trades", 0).events]
    assert numbers == list(range(1, len(numbers) + 1)), f"{where}: the log has a gap or a repeat"
    cursors = [event.at for event in store.events_since("trades", 0).events if event.at]
    assert len(cursors) == len(set(cursors)), f"{where}: a record was folded twice"


def nothing_torn(where: str, store: FileStore) -> None:
    """Every file that readers open is the old one or the new one, whole."""
    folder = store.folder("trades")
    assert store.events_since("trades", 0).bad == [], f"{where}: a torn line in the log"
    if folder.state.exists():
        edited = folder_check.is_state_edited(folder.state.read_bytes())
        assert not edited, f"{where}: state.json is torn"
    current = folder.document("relay")
    if current.exists():
        # The long relay is trimmed on its way in: what counts is that it is one of the whole ones.
        text = current.read_text()
        archived = {path.read_text() for path in folder.archive.glob("relay-*")}
        assert text in {OLD, NEW, "rubbish"} | archived, f"{where}: the relay is torn"
    for path in (folder.snapshot, folder.owner):
        if path.exists():
            msgspec.json.decode(path.read_bytes())
    for path in folder.archive.glob("relay-*"):
        assert relay.parse(path.read_bytes()).next_action, f"{where}: {path.name} is torn"


def test_the_check_sees_a_promise_made_too_early(prepared, tmp_path, monkeypatch):
    """A command that acknowledges before it has written is caught by the sweep."""
    monkeypatch.setattr(sys.modules[__name__], "in_child", hasty)
    with pytest.raises(AssertionError, match="acknowledged, but lost"):
        sweep("loops add", SCENARIOS["loops add"], prepared("loops add"), tmp_path, whole=True)


def hasty(scenario: Scenario, project: Path) -> Callable[[Say], None]:
    """Act as a careless command: acknowledge first, write later."""

    def work(say: Say) -> None:
        say(b"acknowledged")
        in_silence(scenario, project)

    return work


def test_the_check_sees_a_torn_file(prepared, tmp_path, monkeypatch):
    """Files written in place instead of replaced are caught by the sweep."""
    monkeypatch.setattr(durable_files, "replace_file", in_two_writes)
    original, scenario = prepared("relay commit"), SCENARIOS["relay commit"]
    # The files for readers are written last: from there it takes a few kills.
    with pytest.raises(AssertionError, match="torn"):
        sweep("relay commit", scenario, original, tmp_path, whole=True, from_the_end=True)


def in_two_writes(path: Path, data: bytes) -> None:
    """Act as a careless store: truncate, write, write."""
    with path.open("wb", buffering=0) as file:
        file.write(data[: len(data) // 2])
        file.write(data[len(data) // 2 :])


def test_the_sweep_covers_the_default_settings():
    """The long relay really is over the cap, so that trimming and archiving are swept too."""
    assert runtime_settings.RelaySettings().max_relay_tokens < len(LONG) / 4
