"""Symbolic links, pipes and hostile names where our files should be."""

import os
import shutil

import pytest

from conftest import RELAY
from rekindle.documents import relay
from rekindle.errors import StoreError, UnsafePathError, UsageError
from rekindle.policy.projection import open_loops


def add_and_resolve(store, clock):
    """Touch every file that a command can touch."""
    store.submit("trades", open_loops.propose_loop({}, "a", "text", clock()))
    known = store.read("trades").projection.loops
    store.submit("trades", open_loops.resolve_loop(known, "a", "done", clock()))


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../evil", "a/b", "a\\b", "A", "-a", "_a", "a" * 64, "a\n", "a\0b", "é", "a b"],
)
def test_a_hostile_agent_name_is_refused(store, name):
    """A name that could leave the folder, or confuse a shell, never becomes a path."""
    with pytest.raises(UsageError, match="is not a valid agent name"):
        store.folder(name)


@pytest.mark.parametrize("place", ["path", "memories", "archive", "run", "inbox"])
def test_a_link_in_place_of_a_folder_is_refused(store, tmp_path, clock, place):
    """A folder of ours that became a link could lead anywhere."""
    folder = getattr(store.folder("trades"), place)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(UnsafePathError, match="is not a folder"):
        store.submit("trades", open_loops.propose_loop({}, "a", "text", clock()))
    with pytest.raises(UnsafePathError):
        store.read("trades")


@pytest.mark.parametrize("place", ["path", "memories", "archive"])
def test_a_folder_that_becomes_a_link_after_the_check_is_not_followed(store, tmp_path, place):
    """The agent replaces it while a writer is at work; the user's own folder is as it was."""
    folder, victim = getattr(store.folder("trades"), place), tmp_path / "victim"
    shutil.copytree(folder, victim)
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    with store.writer("trades") as writer:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(victim)
        with pytest.raises(UnsafePathError):
            writer.commit_relay(relay.parse(RELAY), by="agent")
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", ["log", "state", "snapshot", "owner", "lock", "resolved"])
def test_a_link_in_place_of_a_file_is_not_followed(store, tmp_path, clock, place):
    """Whatever a planted link points at is neither read nor written."""
    target = tmp_path / "target"
    target.write_text("untouched")
    path = getattr(store.folder("trades"), place)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    with pytest.raises(StoreError):
        add_and_resolve(store, clock)
    assert target.read_text() == "untouched"


@pytest.mark.parametrize("place", ["log", "state", "owner"])
def test_a_pipe_in_place_of_a_file_does_not_hang(store, clock, place):
    """A named pipe is refused at once instead of being waited for."""
    path = getattr(store.folder("trades"), place)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError):
        store.submit("trades", open_loops.propose_loop({}, "a", "text", clock()))


def test_a_planted_segment_link_is_refused(store, tmp_path, clock):
    """The inbox never appends through a link."""
    target = tmp_path / "target"
    target.write_text("untouched")
    (store.folder("trades").inbox / "9.seg").symlink_to(target)
    with pytest.raises(UnsafePathError):
        store.submit("trades", open_loops.propose_loop({}, "a", "text", clock()))
    assert target.read_text() == "untouched"
