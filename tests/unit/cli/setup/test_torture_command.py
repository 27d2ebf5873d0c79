"""`rekindle torture` on a good file system, and on broken ones."""

import errno
import fcntl
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from rekindle.cli import main
from rekindle.cli.setup.torture_command import torture as command
from rekindle.errors import translate_os_errors
from rekindle.flows import torture_folder
from rekindle.flows.torture_folder import (
    PromiseResult,
    try_promises,
)
from rekindle.stores.files import FileStore
from rekindle.system.files import durable_files

# The children of a trial use nothing that a thread of the test runner could hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    for name, small in {
        "_FILES": 3,
        "_LOCKS": 2,
        "_REPLACEMENTS": 30,
        "_LINES": 30,
        "_LOOPS": 2,
        "_LEAST_KILLS": 3,
        "_PATIENCE_SECONDS": 5.0,
    }.items():
        monkeypatch.setattr(torture_folder, name, small)


def broken(folder: Path) -> dict[str, PromiseResult]:
    """Return the failed promises."""
    return {one.promise: one for one in try_promises(folder, seconds=0, seed=1) if one.broken}


def test_a_good_folder_is_reported_and_left_as_it_was(tmp_path, monkeypatch):
    """Six promises are tested; the exit code is 0, the seed is named, and no file is left."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, ["--minutes", "0.01", "--seed", "7"])
    assert result.exit_code == 0, result.output
    assert result.output.count("✓") == 7
    assert "--seed 7" in result.output
    assert "writers killed" in result.output
    assert list(tmp_path.iterdir()) == []


def test_programs_get_json(tmp_path):
    """`--json` prints one object with the tests and their results."""
    result = CliRunner().invoke(command, [str(tmp_path), "--minutes", "0.01", "--json"])
    told = msgspec.json.decode(result.output)
    assert told["held"] is True
    assert [one["broken"] for one in told["findings"]] == [""] * 6


def test_a_project_is_tested_in_its_own_folder(tmp_path, monkeypatch):
    """Without FOLDER the project's .rekindle is tested, from any folder below."""
    (tmp_path / "rekindle.yaml").write_text("version: 1\n")
    (tmp_path / ".rekindle").mkdir()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    result = CliRunner().invoke(command, ["--minutes", "0.01"])
    assert f"Testing {tmp_path / '.rekindle'} for" in result.output


def test_locks_that_exclude_no_process_are_seen(tmp_path, monkeypatch):
    """Such locks occur on a network file system that grants every lock."""
    monkeypatch.setattr(fcntl, "flock", lambda _fd, _how: None)
    found = broken(tmp_path)["a lock excludes other processes"]
    assert found.broken == "two processes held the same lock at once"
    assert "two writers" in found.means


def test_a_file_system_without_locks_ends_with_8(tmp_path, monkeypatch, capsys):
    """Some network file systems have none; the message says so, and what to do."""

    def refuse(_fd, _how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert main.run(["torture", str(tmp_path), "--minutes", "0.01"]) == 8
    said = capsys.readouterr()
    assert "✗ a lock excludes other processes" in said.out
    assert "No locks available" in said.out
    assert "do not put .rekindle there" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_files_ends_with_8(capsys):
    """If no file can be created, the other tests are skipped."""
    assert main.run(["torture", "/proc", "--minutes", "0.01"]) == 8
    assert "✗ a folder can be created: /proc" in capsys.readouterr().out


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["mkdir", "first trial", "a child"])
def test_a_full_disk_is_not_a_verdict_on_it(tmp_path, monkeypatch, capsys, number, where):
    """The user is not told to move away from a disk that only needs space."""
    full = OSError(number, os.strerror(number))
    parent, replaced = os.getpid(), durable_files.replace_file

    def refuse(path: Path, *data: bytes | int) -> None:
        if where == "a child" and os.getpid() == parent:
            return replaced(path, *data)
        with translate_os_errors(path):
            raise full

    if where == "mkdir":
        monkeypatch.setattr(Path, "mkdir", lambda *_: (_ for _ in ()).throw(full))
    else:
        monkeypatch.setattr(durable_files, "replace_file", refuse)
    assert main.run(["torture", str(tmp_path), "--minutes", "0.01"]) == 5
    said = capsys.readouterr()
    assert f"Error: {tmp_path}: could not be tested: {os.strerror(number)}\n" in said.err
    assert "→ free some space, then try again\n" in said.err
    assert "✗" not in said.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("trial", ["0", "1", "5"])
def test_stopping_it_leaves_nothing_behind(place, tmp_path, number, trial):
    """A `kill` or a closed terminal ends it as Ctrl-C does: no folder or process is left."""
    tried = tmp_path / "tried"
    tried.mkdir()
    started = place.start(
        [sys.executable, "-I", "-m", "rekindle", "torture", str(tried)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
    )
    place.wait_for(lambda: bool(list(tried.glob(f".rekindle-torture-*/{trial}/*"))))
    started.signal(number)
    assert started.wait() == main.INTERRUPTED, started.err
    assert started.err == "\nStopped.\n"
    assert "✗" not in started.out
    assert list(tried.iterdir()) == []
    assert place.processes() == []


def test_a_file_system_without_fsync_is_seen(tmp_path, monkeypatch):
    """If the disk does not confirm, nothing can be promised."""

    def refuse(_fd):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", refuse)
    assert "did not confirm" in broken(tmp_path)["writes are confirmed"].broken


def test_files_that_are_replaced_in_two_steps_are_seen(tmp_path, monkeypatch):
    """Such a file system implements a rename as a copy."""

    def copy(path: Path, data: bytes) -> None:
        with path.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            os.sched_yield()
            file.write(data[len(data) // 2 :])

    monkeypatch.setattr(durable_files, "replace_file", copy)
    monkeypatch.setattr(torture_folder, "_REPLACEMENTS", 2_000)
    assert "files are replaced atomically" in broken(tmp_path)


def test_appends_that_overwrite_each_other_are_seen(tmp_path, monkeypatch):
    """Such a file system does not keep O_APPEND between clients."""
    honest = durable_files.open_plain

    def without_append(path: Path, flags: int, root: Path | None = None) -> int:
        return honest(path, flags & ~os.O_APPEND if path.name == "lines" else flags, root)

    monkeypatch.setattr(durable_files, "open_plain", without_append)
    assert "concurrent appends stay complete" in broken(tmp_path)


def test_acknowledged_records_that_are_gone_are_seen(tmp_path, monkeypatch):
    """A store with empty promises is caught by counting."""
    monkeypatch.setattr(FileStore, "submit", lambda *_args, **_options: True)
    found = broken(tmp_path)
    assert "acknowledged records are lost" in found["concurrent writers lose nothing"].broken
    assert "acknowledged records are lost" in found[torture_folder._KEPT].broken
