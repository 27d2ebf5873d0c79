"""The hook program is the same bytes everywhere, and is verified as a whole."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from rekindle import hook
from rekindle.errors import StoreError
from rekindle.system.files import (
    durable_files,
    hook_program,
    user_folder,
)

_PRINT = "from rekindle.system.files import hook_program; print(hook_program.find_hook_path().name)"
_BUSY = f"import json, re, rekindle.cli.main, rekindle.hook.record_event; {_PRINT}"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: tmp_path / "own")


@pytest.mark.parametrize(("name", "least"), [("hook", 50), ("gate", 20)])
def test_the_program_is_its_modules_without_their_imports_of_each_other(
    name: hook_program.ProgramName, least: int
) -> None:
    """One namespace needs each name once, and no module of ours at run time."""
    body = ast.parse(hook_program.join_source(name)).body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    names += [node.targets[0].id for node in body if isinstance(node, ast.Assign)]  # type: ignore[attr-defined]
    assert len(names) == len(set(names)) > least
    assert b"rekindle.hook" not in hook_program.join_source(name)
    modules = {path.stem for path in Path(hook.__file__).parent.glob("*.py")}
    assert modules == {*hook.PARTS, *hook.GATE_PARTS, "__init__"}


@pytest.mark.parametrize("parts", [hook.PARTS, hook.GATE_PARTS])
def test_every_name_that_a_module_imports_is_defined_before_it(parts: tuple[str, ...]) -> None:
    """The imports between the modules are removed, so their order must be that of the imports."""
    known: set[str] = set()
    for part in parts:
        body = ast.parse((Path(hook.__file__).parent / f"{part}.py").read_text()).body
        imports = [node for node in body if isinstance(node, ast.ImportFrom)]
        assert {node.module.rpartition(".")[2] for node in imports if node.module} <= known, part
        assert not any(alias.asname for node in imports for alias in node.names), part
        known.add(part)


@pytest.mark.parametrize("code", [_PRINT, _BUSY])
def test_every_process_compiles_the_same_bytes(code: str) -> None:
    """Whatever a process has imported, the hash of the program is one."""
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert told.stdout.strip() == hook_program.find_hook_path().name


def test_it_is_written_once() -> None:
    assert hook_program.provide_program()
    assert not hook_program.provide_program()
    assert hook_program.find_problem(hook_program.find_hook_path(), this_python=True) == ""


@pytest.mark.parametrize("place", [4, 20, -1])
def test_one_changed_byte_is_found_and_replaced(place: int) -> None:
    """In the header, in the code, at the end: each counts, also for another Python's program."""
    hook_program.provide_program()
    program = hook_program.find_hook_path()
    data = bytearray(hook_program.compile_hook())
    data[place] ^= 1
    program.write_bytes(data)
    for this_python in (True, False):
        assert hook_program.find_problem(program, this_python=this_python) == "was changed"
    assert hook_program.provide_program()
    assert program.read_bytes() == hook_program.compile_hook()


def test_a_link_in_its_place_is_replaced(tmp_path: Path) -> None:
    hook_program.provide_program()
    elsewhere = tmp_path / "elsewhere.pyc"
    elsewhere.write_bytes(hook_program.compile_hook())
    hook_program.find_hook_path().unlink()
    hook_program.find_hook_path().symlink_to(elsewhere)
    assert hook_program.find_problem(hook_program.find_hook_path(), this_python=True)
    assert hook_program.provide_program()
    assert not hook_program.find_hook_path().is_symlink()


def test_a_program_elsewhere_is_not_trusted(tmp_path: Path) -> None:
    program = tmp_path / hook_program.find_hook_path().name
    program.write_bytes(hook_program.compile_hook())
    assert "an agent could change it" in hook_program.find_problem(program, this_python=True)


def test_a_disk_that_refuses_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(to: Path, data: bytes) -> None:
        raise StoreError(str(to), "No space left on device", hint="free some space")

    monkeypatch.setattr(durable_files, "replace_file", full)
    with pytest.raises(StoreError, match="No space left") as raised:
        hook_program.provide_program()
    assert raised.value.hint == "free some space"
