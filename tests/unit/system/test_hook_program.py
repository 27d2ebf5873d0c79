"""The hook program is the same bytes everywhere, and is verified as a whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from rekindle.errors import HookProgramError, StoreError
from rekindle.system import disk, hook_program, user_folder

_PRINT = "from rekindle.system import hook_program; print(hook_program.path().name)"
_BUSY = f"import json, re, rekindle.cli.main, rekindle.hook; {_PRINT}"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(user_folder, "path", lambda: tmp_path / "own")


@pytest.mark.parametrize("code", [_PRINT, _BUSY])
def test_every_process_compiles_the_same_bytes(code: str) -> None:
    """Whatever a process has imported, the hash of the program is one."""
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert told.stdout.strip() == hook_program.path().name


def test_it_is_written_once() -> None:
    assert hook_program.provide()
    assert not hook_program.provide()
    assert hook_program.problem(hook_program.path(), this_python=True) == ""


@pytest.mark.parametrize("place", [4, 20, -1])
def test_one_changed_byte_is_found_and_replaced(place: int) -> None:
    """In the header, in the code, at the end: each counts, also for another Python's program."""
    hook_program.provide()
    program = hook_program.path()
    data = bytearray(hook_program.content())
    data[place] ^= 1
    program.write_bytes(data)
    for this_python in (True, False):
        assert hook_program.problem(program, this_python=this_python) == "was changed"
    assert hook_program.provide()
    assert program.read_bytes() == hook_program.content()


def test_a_link_in_its_place_is_replaced(tmp_path: Path) -> None:
    hook_program.provide()
    elsewhere = tmp_path / "elsewhere.pyc"
    elsewhere.write_bytes(hook_program.content())
    hook_program.path().unlink()
    hook_program.path().symlink_to(elsewhere)
    assert hook_program.problem(hook_program.path(), this_python=True)
    assert hook_program.provide()
    assert not hook_program.path().is_symlink()


def test_a_program_elsewhere_is_not_trusted(tmp_path: Path) -> None:
    program = tmp_path / hook_program.path().name
    program.write_bytes(hook_program.content())
    assert "an agent could change it" in hook_program.problem(program, this_python=True)


def test_a_disk_that_refuses_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(to: Path, data: bytes) -> None:
        raise StoreError(str(to), "No space left on device", hint="free some space")

    monkeypatch.setattr(disk, "replace", full)
    with pytest.raises(HookProgramError, match="No space left") as raised:
        hook_program.provide()
    assert raised.value.hint == "free some space"
