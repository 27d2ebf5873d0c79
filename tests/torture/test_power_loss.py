"""kill -9 at every point of a write, followed by a power loss.

Unconfirmed data may be gone, half there, or a name without its bytes. Each trial runs on its own
real file system: an acknowledged write, unsynced heartbeats, then a command that is killed; the
power is cut, the file system replays its journal, and the same check as after a plain kill must
hold.

CI tries a seeded sample; `just torture` tries every disk operation, on three file systems, with two
kinds of cut.
"""

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import prerequisites
from copies import copy_private
from rekindle import config
from rekindle.documents import events
from rekindle.policy.projection import open_loops
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.system.files import (
    durable_files,
    user_folder,
)
from rekindle.wiring.open_store import open_store
from torture import power, tracing
from torture.power import Cut, Image, with_image
from torture.test_kill import (
    SCENARIOS,
    WHOLE,
    Scenario,
    examine,
    in_child,
    in_silence,
    relay_text,
)
from torture.tracing import Call, Say, kill_before, trace

pytestmark = pytest.mark.torture

SAMPLE = 20
"""Trials on each file system that CI makes."""
SEED = 20260409
CHANGES = {
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fchmod", "chmod"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "utimensat"),
}
"""Calls after which a power loss may leave something else than before them."""
BEFORE = "before"
"""The loop that was acknowledged in the same breath, before the command that is killed."""


class Trial(NamedTuple):
    scenario: str
    cut: Cut
    point: int | None
    """The system call before which the command is killed; None: it ends, and then the power goes"""


@pytest.fixture(autouse=True)
def _possible():
    """Skip without ptrace; fail in CI, where an unnoticed skip would remove these tests."""
    prerequisites.require(tracing.obstacle() or power.obstacle())


@pytest.mark.parametrize("kind", power.KINDS)
def test_unconfirmed_writes_are_really_lost(kind):
    """The control: without fsync a file, a rename and an appended line do not survive a cut."""

    def lose(image: Image) -> None:
        folder = image.folder
        for name in ("renamed", "appended"):
            (folder / name).write_bytes(b"old")
        image.sync()
        (folder / "new").write_bytes(b"new")
        (folder / "temporary").write_bytes(b"new")
        (folder / "temporary").replace(folder / "renamed")
        with (folder / "appended").open("ab") as file:
            file.write(b" and more")
        image.lose_power(Cut.NOTHING_WRITTEN)
        assert not (folder / "new").exists()
        assert (folder / "renamed").read_bytes() == b"old"
        assert (folder / "appended").read_bytes() == b"old"

    with_image(kind, lose)


@pytest.mark.parametrize("kind", ["ext4 noauto_da_alloc", "xfs"])
def test_a_name_can_arrive_without_its_bytes(kind):
    """The control for the other cut: renamed without fsync, the file is there and empty."""

    def lose(image: Image) -> None:
        (image.folder / "temporary").write_bytes(b"new")
        (image.folder / "temporary").replace(image.folder / "renamed")
        image.lose_power(Cut.JOURNAL_WRITTEN)
        assert (image.folder / "renamed").read_bytes() == b""

    with_image(kind, lose)


@pytest.mark.parametrize("kind", power.KINDS)
def test_a_power_loss_anywhere_loses_nothing(prepared, kind):
    """Killed at any point and then without power: nothing torn, nothing acknowledged lost."""

    def campaign(image: Image) -> int:
        wanted = trials(image, prepared)
        if not WHOLE:
            wanted = random.Random(f"{SEED}{kind}").sample(wanted, SAMPLE)
        for trial in wanted:
            attempt(image, prepared(trial.scenario), trial)
        return len(wanted)

    made = with_image(kind, campaign)
    assert made >= (350 if WHOLE else SAMPLE)
    print(f"\n{kind}: {made} kills, each with a power loss: 0 torn, 0 acknowledged lost")


def trials(image: Image, prepared: Callable[[str], Path], only: str = "") -> list[Trial]:
    with user_folder_of(None):  # prepared data outlives every cut
        for name in SCENARIOS:
            prepared(name)
    return [
        Trial(name, cut, point)
        for name in ([only] if only else SCENARIOS)
        for point in points(image, prepared(name), name)
        for cut in Cut
    ]


def points(image: Image, original: Path, name: str) -> list[int | None]:
    """Yield the points: at the start, after each call that changes something, and at the end."""
    for _warm in range(2):
        project, _ = begin(image, original)
        outcome, calls = trace(in_child(SCENARIOS[name], project))
    assert outcome.said == b"acknowledged"
    behind = [number + 1 for number, call in enumerate(calls, 1) if changes(call)]
    return [1, *(number for number in behind if number <= len(calls)), None]


def changes(call: Call) -> bool:
    return call.name in CHANGES or (call.name == "openat" and bool(call.args[2] & os.O_CREAT))


class _Place:
    """The current place of the user folder; None: the one for all tests."""

    folder: Path | None = None


@contextmanager
def user_folder_of(folder: Path | None) -> Iterator[None]:
    before, _Place.folder = _Place.folder, folder
    yield
    _Place.folder = before


@pytest.fixture(autouse=True)
def _user_folder_in_the_image(monkeypatch):
    usual = user_folder.find_user_folder
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: _Place.folder or usual())
    with user_folder_of(None):
        yield


def begin(image: Image, original: Path) -> tuple[Path, FileStore]:
    """Write old data to the disk, and data that was acknowledged a moment ago."""
    project = image.folder / "project"
    with user_folder_of(None):
        kept = find_private_project(original).path
    _Place.folder = image.folder / "user"  # the seal loses its power with the log
    shutil.rmtree(_Place.folder, ignore_errors=True)
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(original, project)
    copy_private(kept, find_private_project(project).path)
    image.sync()
    store = open_store(config.load_project(project))
    known = store.read("trades").projection.loops
    store.submit(
        "trades",
        open_loops.propose_loop(known, BEFORE, "acknowledged a moment ago", clock.read_clock()),
    )
    # These are not acknowledged: they may be lost, but must not take anything with them.
    beat = events.Heartbeat(ts=clock.read_clock(), tool="Bash")
    inbox.append_records(store.folder("trades").inbox, [beat, beat], durable=False)
    return project, store


def attempt(image: Image, original: Path, trial: Trial) -> None:
    where = f"{trial.scenario}, killed before call {trial.point}, {trial.cut.name}"
    scenario = SCENARIOS[trial.scenario]
    project, store = begin(image, original)
    log = store.folder("trades").log.read_bytes()
    known = store.read("trades").projection.loops
    relay = relay_text(store) if store.read("trades").committed.documents else ""
    work = in_child(scenario, project)
    outcome = trace(work)[0] if trial.point is None else kill_before(work, trial.point)
    if trial.point is not None and outcome.killed_at is None and outcome.calls < trial.point:
        # This run made a few calls less than the one in which they were counted.
        attempt(image, original, trial._replace(point=outcome.calls - 1))
        return
    assert outcome.killed_at == trial.point, f"{where}: the kill did not happen"
    image.lose_power(trial.cut)
    assert store.folder("trades").log.read_bytes().startswith(log), f"{where}: the log was lost"
    survived = store.read("trades").projection.loops
    assert survived[BEFORE].is_open, f"{where}: acknowledged before, but lost"
    assert set(known) <= set(survived), f"{where}: a loop was lost"
    assert not relay or relay_text(store), f"{where}: the relay is lost"
    examine(where, scenario, project, outcome.said)


def test_the_check_sees_a_rename_without_fsync(prepared, monkeypatch):
    """A store that renames files whose bytes no disk has confirmed is caught by the campaign."""
    original = prepared("relay commit")
    monkeypatch.setattr(durable_files, "replace_file", without_fsync)

    def campaign(image: Image) -> None:
        for trial in trials(image, prepared, "relay commit"):
            attempt(image, original, trial)

    with pytest.raises(AssertionError, match="is torn"):
        with_image("ext4 noauto_da_alloc", campaign)


def without_fsync(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{durable_files.TEMPORARY_PREFIX}{path.name}")
    temporary.write_bytes(data)
    temporary.replace(path)
    durable_files.sync_folder(path.parent)


def test_the_check_sees_a_promise_before_the_fsync(prepared, monkeypatch):
    """A command that acknowledges what it has written but not confirmed is caught."""
    monkeypatch.setattr(sys.modules[__name__], "in_child", hasty)
    original = prepared("loops add")

    def lose(image: Image) -> None:
        attempt(image, original, Trial("loops add", Cut.NOTHING_WRITTEN, None))

    with pytest.raises(AssertionError, match="acknowledged, but lost"):
        with_image("ext4", lose)


def hasty(scenario: Scenario, project: Path) -> Callable[[Say], None]:
    """Everything is written; then comes the promise; and only then would the disk be asked."""

    def work(say: Say) -> None:
        durable_files._sync_file = lambda _fd, _path: None
        if in_silence(scenario, project) == 0:
            say(b"acknowledged")

    return work
