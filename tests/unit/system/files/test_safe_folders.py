"""Links that an agent puts in the place of folders below `.rekindle`."""

import ast
from pathlib import Path

import pytest

import rekindle
from rekindle.errors import UnsafePathError
from rekindle.system.files import durable_files, file_locks

WRITES = {
    "replace": lambda path: durable_files.replace_file(path, b"new\n"),
    "append": lambda path: durable_files.append_durably(path, b"new\n"),
    "append to a new file": lambda path: durable_files.append_durably(
        path.with_name("new"), b"new\n"
    ),
    "cut": lambda path: durable_files.truncate_file(path, 0),
    "write_from": lambda path: durable_files.write_from(path, 0, [b"new\n"]),
    "write_at": lambda path: durable_files.write_at(path, 0, b"new\n"),
    "make_folder": lambda path: durable_files.make_folder(path.with_name("new")),
    "make_private": durable_files.make_private,
    "set_aside": lambda path: durable_files.rename_durably(path, path.with_name("aside")),
    "remove": durable_files.remove_file,
    "sweep_temporary": lambda path: durable_files.sweep_temporary(path.parent),
    "lock": lambda path: file_locks.FileLock(path.with_name("lock")),
}
READS = {
    "read": durable_files.read_bytes,
    "read_end": lambda path: durable_files.read_last_bytes(path, 10),
    "entries": lambda path: list(durable_files.list_entries(path.parent)),
}


@pytest.fixture
def victim(tmp_path):
    """A folder of the user, with files that are named like ours."""
    made = tmp_path / "victim" / "run"
    made.mkdir(parents=True)
    for name in ("file", ".tmp-file"):
        (made / name).write_text("the user's\n")
        (made / name).chmod(0o644)
    return made.parent


def look_at(folder):
    return {
        path: (path.lstat().st_mode, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "linked",
    [".rekindle", ".rekindle/agents", ".rekindle/agents/trades", ".rekindle/agents/trades/run"],
)
@pytest.mark.parametrize("name", [*WRITES, *READS])
def test_no_folder_below_is_reached_through_a_link(tmp_path, victim, name, linked):
    """The folder of the file is included: the kernel's own O_NOFOLLOW is for the last name only."""
    path = tmp_path / "project/.rekindle/agents/trades/run/file"
    link = tmp_path / "project" / linked
    link.parent.mkdir(parents=True)
    below = path.parent.relative_to(link).parts
    target = victim.joinpath("run") if not below else victim
    if len(below) > 1:  # the same names, in the user's folder
        target = victim / "more"
        target.joinpath(*below).parent.mkdir(parents=True)
        victim.joinpath("run").rename(target.joinpath(*below))
    link.symlink_to(target)
    assert path.exists()
    before = look_at(victim)
    with pytest.raises(UnsafePathError):
        {**WRITES, **READS}[name](path)
    assert look_at(victim) == before


def test_a_project_may_be_reached_through_a_link(tmp_path):
    """Above `.rekindle` nothing is the agent's alone to decide."""
    (tmp_path / "real/.rekindle/agents").mkdir(parents=True)
    (tmp_path / "project").symlink_to(tmp_path / "real")
    durable_files.replace_file(tmp_path / "project/.rekindle/agents/file", b"new\n")
    assert durable_files.read_bytes(tmp_path / "project/.rekindle/agents/file") == b"new\n"


def test_a_relative_path_is_held_to_the_same_rule(tmp_path, victim, monkeypatch):
    """A command may be given a folder of the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".rekindle").symlink_to(victim / "run")
    with pytest.raises(UnsafePathError):
        durable_files.replace_file(Path(".rekindle/file"), b"new\n")
    assert (victim / "run/file").read_text() == "the user's\n"


def test_a_lock_behind_a_link_is_not_held(tmp_path, victim):
    """Otherwise `stop` would fail where it must look for the supervisor's other lock."""
    (tmp_path / ".rekindle").symlink_to(victim / "run")
    with file_locks.hold_lock(victim / "run/file", 0.0) as lock:
        assert lock
        assert file_locks.is_locked(tmp_path / ".rekindle/file") is False


def test_below_an_object_that_is_not_a_folder_nothing_is_there(tmp_path):
    """Readers of locks rely on that: a file in the place of a folder is not a held lock."""
    (tmp_path / ".rekindle").write_text("")
    assert file_locks.is_locked(tmp_path / ".rekindle/lock") is False
    assert durable_files.path_exists(tmp_path / ".rekindle/lock") is False


CHANGES = {
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "symlink_to",
    "touch",
    "write_text",
    "write_bytes",
    "hardlink_to",
    "chmod",
}
OUTSIDE = {
    "flows/hooks/settings_file.py": "settings of a CLI, where a link is the user's own arrangement",
    "flows/hooks/export_hooks.py": "a file that the operator names",
    "flows/handoff/window_gauge.py": "the launch's folder outside the workspace",
    "flows/handoff/notice_queue.py": "the launch's folder outside the workspace",
    "flows/plugins/install_plugin.py": "settings of a CLI, and a record in the user's own folder",
    "stores/folders/private_files.py": "the user's own folder",
}


def test_stores_and_flows_change_files_through_disk_alone():
    """A `Path` follows every link above its last name."""
    source = Path(rekindle.__file__).parent
    found = {
        f"{path.relative_to(source)}:{node.lineno}"
        for room in ("stores", "flows")
        for path in source.joinpath(room).rglob("*.py")
        if str(path.relative_to(source)) not in OUTSIDE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CHANGES
    }
    assert found == set()
