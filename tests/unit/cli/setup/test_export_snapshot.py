"""`rekindle export` and `rekindle import` move the agent's files as a snapshot, with real git."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import worktrees
from export_files import read_export
from rekindle.cli import main
from rekindle.config import load_project
from rekindle.documents import agent_export
from rekindle.wiring.agent_workspaces import find_workspace
from rekindle.wiring.keeping.record_session import record_session
from rekindle.wiring.open_store import open_store

PACK = "snapshot/files.pack"
SESSION = "30bc600c-59d1-47d3-8b01-c0bbd4e423f5"


@pytest.fixture
def rekindle(tmp_path, monkeypatch, capsys):
    """Run a command in a folder; return its code and its output."""
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(folder, *arguments):
        monkeypatch.chdir(tmp_path / folder)
        code = main.run(list(arguments))
        out, err = capsys.readouterr()
        return code, out + err

    return run


@pytest.fixture
def here(rekindle, tmp_path):
    """A project in a repository, in which an agent has work that is not committed."""
    folder = tmp_path / "here"
    folder.mkdir()
    assert rekindle("here", "init", "trades", "--yes", "--harness", "codex")[0] == 0
    assert rekindle("here", "loops", "add", "rate-limit", "How many?")[0] == 0
    make_repository(folder)
    (folder / "kept.txt").write_text("changed\n")
    (folder / "new.txt").write_text("new\n")
    return folder


def make_repository(folder):
    worktrees.git(folder, "init", "-q", "-b", "main")
    (folder / "kept.txt").write_text("kept\n")
    worktrees.git(folder, "add", "kept.txt")
    worktrees.git(folder, "commit", "-qm", "one")


def clone(here):
    worktrees.git(here.parent, "clone", "-q", str(here), "there")
    return here.with_name("there")


def export(rekindle, *options):
    code, said = rekindle("here", "export", "trades", "../trades.rekindle", *options)
    assert code == 0, said
    return said


def import_there(rekindle, *options, code=0):
    exit_code, said = rekindle("there", "import", "../trades.rekindle", "--yes", *options)
    assert exit_code == code, said
    return said


def read_head(folder):
    return worktrees.git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")


def read_refs(folder):
    return worktrees.git(folder, "for-each-ref", "refs/rekindle/").splitlines()


def test_the_files_of_the_agent_arrive_as_a_snapshot(rekindle, here):
    """Rewinding to it restores files, branch and commit as they were at the export."""
    there = clone(here)
    worktrees.git(there, "checkout", "-q", "--detach")
    assert "snapshot trades/1" in export(rekindle)
    said = import_there(rekindle)
    assert "`rekindle rewind trades/1`" in said
    assert (there / "kept.txt").read_text() == "kept\n", "the import does not change files"
    (listed,) = json.loads(rekindle("there", "snapshots", "trades", "--json")[1])["snapshots"]
    assert (listed["name"], listed["reason"]) == ("trades/1", "export")
    code, said = rekindle("there", "rewind", "trades/1", "--yes")
    assert code == 0, said
    assert (there / "kept.txt").read_text() == "changed\n"
    assert (there / "new.txt").read_text() == "new\n"
    assert read_head(there) == read_head(here)
    worktrees.git(there, "fsck", "--strict", "--connectivity-only")


def test_the_files_arrive_without_the_commits(rekindle, here):
    """A repository without the agent's commit keeps its own, and the user is told."""
    there = here.with_name("there")
    there.mkdir()
    make_repository(there)
    worktrees.git(there, "commit", "-q", "--amend", "-m", "another")
    before = read_head(there)
    export(rekindle)
    commit = worktrees.git(here, "rev-parse", "HEAD").decode()
    said = import_there(rekindle)
    assert f"commit {commit[:10]} is not in this repository" in said
    code, said = rekindle("there", "rewind", "trades/1", "--yes")
    assert code == 0, said
    assert (there / "kept.txt").read_text() == "changed\n"
    assert (there / "new.txt").read_text() == "new\n"
    assert read_head(there) == before
    worktrees.git(there, "fsck", "--strict", "--connectivity-only")


def test_an_export_without_a_repository_has_no_snapshot(rekindle, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    assert rekindle("here", "init", "trades", "--yes", "--harness", "codex")[0] == 0
    assert rekindle("here", "loops", "add", "rate-limit", "How many?")[0] == 0
    said = export(rekindle)
    assert "not in the file: your project's files" in said
    assert "not in a git repository" in said
    assert "rewind" not in import_there(rekindle)


def test_an_import_without_a_repository_is_refused_with_two_ways_on(rekindle, here, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    export(rekindle)
    said = import_there(rekindle, code=5)
    assert "git init" in said
    assert "--no-snapshot" in said
    assert list(there.iterdir()) == []
    assert "rewind" not in import_there(rekindle, "--no-snapshot")


def test_a_user_can_leave_the_files_out(rekindle, here):
    there = clone(here)
    assert "--no-snapshot" in export(rekindle, "--no-snapshot")
    assert PACK not in read_export(Path("../trades.rekindle").read_bytes()).parts
    import_there(rekindle)
    assert read_refs(there) == []


def test_an_export_does_not_contain_earlier_exports(rekindle, here):
    """Otherwise each export in the project's folder would be twice as large as the one before."""
    for name in ("one.rekindle", "two.rekindle"):
        code, said = rekindle("here", "export", "trades", name)
        assert code == 0, said
    listed = worktrees.git(here, "ls-tree", "-r", "--name-only", "refs/rekindle/trades/2").split()
    assert b"new.txt" in listed
    assert b"one.rekindle" not in listed


def test_with_snapshots_off_the_newest_one_moves_if_there_is_one(rekindle, here):
    (here / "rekindle.yaml").write_text(
        (here / "rekindle.yaml").read_text() + "runtime:\n  snapshots: {take: false}\n"
    )
    assert "snapshots: {take: false}" in export(rekindle)
    assert read_refs(here) == []


@pytest.mark.parametrize("damage", ["flip", "cut", "drop"])
def test_a_changed_snapshot_is_refused_by_its_checksum(rekindle, here, damage):
    there = clone(here)
    export(rekindle)
    file = here.with_name("trades.rekindle")
    data = file.read_bytes()
    pack = read_export(data).parts[PACK]
    start = data.index(pack)
    bad = bytearray(data)
    if damage == "flip":
        bad[start + len(pack) // 2] ^= 1
    else:
        del bad[start + 20 : start + 20 + (1 if damage == "cut" else len(pack) - 20)]
    file.write_bytes(bytes(bad))
    assert "torn or was changed" in import_there(rekindle, code=4)
    assert sorted(path.name for path in there.iterdir()) == [".git", "kept.txt"]


def forge(file, pack=None, **changes):
    """Change the pack or what the header says about it, with right checksums."""
    export = read_export(file.read_bytes())
    snapshot = msgspec.structs.replace(export.header.snapshot, **changes)
    header = msgspec.structs.replace(export.header, snapshot=snapshot)
    parts = {**export.parts, PACK: export.parts[PACK] if pack is None else pack}
    file.write_bytes(agent_export.render(header, parts))


@pytest.mark.parametrize(
    "changes",
    [
        {"pack": b"PACK"},
        {"pack": b""},
        {"commit": "0" * 40},
        {"commit": "HEAD"},
        {"commit": "--help"},
        {"name": "trades/2"},
        {"name": "other/1"},
        {"name": "trades/../x"},
    ],
)
def test_a_forged_snapshot_is_refused_before_anything_is_written(rekindle, here, changes):
    there = clone(here)
    export(rekindle)
    forge(here.with_name("trades.rekindle"), **changes)
    exit_code, said = rekindle("there", "import", "../trades.rekindle", "--yes")
    assert exit_code in {4, 5}, said
    assert "→" in said
    assert sorted(path.name for path in there.iterdir()) == [".git", "kept.txt"]
    assert read_refs(there) == []


def test_a_repeated_import_adds_the_snapshot_once(rekindle, here):
    """As after a crash between the snapshot and the end of the import."""
    there = clone(here)
    export(rekindle)
    import_there(rekindle)
    refs = read_refs(there)
    stamp = there / ".rekindle/agents/trades/run/importing"
    data = here.with_name("trades.rekindle").read_bytes()
    stamp.write_bytes(read_export(data).digest.encode())
    import_there(rekindle)
    assert read_refs(there) == refs


@pytest.mark.parametrize("has_commits", [True, False])
def test_the_clone_of_an_agent_starts_with_the_exported_files(rekindle, here, has_commits):
    """The work of an agent with its own clone is not in the user's work tree."""
    manifest = here / "rekindle.yaml"
    manifest.write_text(manifest.read_text().rstrip("\n") + "\n    workspace: clone\n")
    there = clone(here)
    workspace = find_workspace(load_project(here), "trades")
    workspace.open((), lambda: None, updates=False)
    (workspace.folder / "kept.txt").write_text("committed\n")
    worktrees.git(workspace.folder, "commit", "-qam", "two")
    (workspace.folder / "new.txt").write_text("of the clone\n")
    workspace.publish(datetime.now(UTC))
    if has_commits:
        worktrees.git(there, "fetch", "-q", "origin")
    export(rekindle)
    said = import_there(rekindle)
    assert "`rekindle run trades` starts with them" in said
    moved = find_workspace(load_project(there), "trades")
    moved.open((), lambda: None, updates=False)
    assert (moved.folder / "kept.txt").read_text() == "committed\n"
    assert (moved.folder / "new.txt").read_text() == "of the clone\n"
    assert (read_head(moved.folder) == read_head(workspace.folder)) is has_commits


def test_the_session_continues_after_a_rewind_to_the_exported_files(rekindle, here):
    """It knows these files. After a rewind to other files, the next session is a fresh one."""
    there = clone(here)
    export(rekindle)
    import_there(rekindle)
    store = open_store(load_project(there))
    record_session(
        store,
        "trades",
        session=SESSION,
        harness="codex",
        transcript=str(there / "x.jsonl"),
        origin="import",
    )
    assert rekindle("there", "rewind", "trades/1", "--yes")[0] == 0
    assert store.read("trades").projection.rewound is None
    assert rekindle("there", "rewind", "trades/2", "--yes")[0] == 0
    assert store.read("trades").projection.rewound is not None
