"""Programs that Rekindle starts itself are never found in a workspace."""

from pathlib import Path
from typing import NoReturn

import pytest

from rekindle.errors import ProgramMissingError
from rekindle.system.processes import program_search
from rekindle.system.processes.child_processes import HostProcesses


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A PATH with a relative folder, one of the workspace, a link to it, and one outside."""
    monkeypatch.setattr(program_search, "_workspaces", set())
    outside, inside = tmp_path / "outside", tmp_path / "project/bin"
    for folder in (outside, inside):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inside)
    program_search.exclude_folders(tmp_path / "project")
    for folder, name in ((inside, "git"), (inside, "only"), (outside, "git"), (outside, "node")):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    return f"bin:.:{inside}:{tmp_path / 'link'}:{outside}"


def test_a_program_is_found_outside(path: str, tmp_path: Path) -> None:
    assert program_search.find_executable("git", path) == str(tmp_path / "outside/git")
    assert program_search.find_executable("only", path) is None
    assert program_search.make_safe_path(path) == str(tmp_path / "outside")


def test_a_cli_searches_the_workspace_last(path: str, tmp_path: Path) -> None:
    """Relative folders go: they mean another folder wherever a program is started."""
    outside, inside = str(tmp_path / "outside"), str(tmp_path / "project/bin")
    assert program_search.order_path(path) == f"{outside}:{inside}:{tmp_path / 'link'}"


def test_a_command_gets_its_path(path: str, tmp_path: Path) -> None:
    assert program_search.resolve_command(["git", "log"], path) == (
        str(tmp_path / "outside/git"),
        "log",
    )
    assert program_search.resolve_command(["./git"], path) == ("./git",)
    assert program_search.resolve_command(["nowhere"], path) == ("nowhere",)
    with pytest.raises(ProgramMissingError, match="only in the workspace"):
        program_search.resolve_command(["only"], path)


def test_the_interpreter_of_a_script_is_found_outside_too(path: str, tmp_path: Path) -> None:
    """`env` would search the PATH that the script is given."""
    script = tmp_path / "outside/gemini"
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    assert program_search.resolve_command(["gemini", "-p"], path) == (
        str(tmp_path / "outside/node"),
        str(script),
        "-p",
    )


def test_a_search_does_not_walk_over_every_workspace(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has seen thousands of workspaces starts git as fast as at first."""

    class Listed(set[Path]):
        def __iter__(self) -> NoReturn:
            raise AssertionError("walked over all workspaces")

    monkeypatch.setattr(program_search, "_workspaces", Listed(program_search._workspaces))
    assert program_search.find_executable("git", path) == str(tmp_path / "outside/git")


def test_the_missing_interpreter_of_a_script_is_named(tmp_path: Path) -> None:
    """The system says of the script that there is no such file."""
    script = tmp_path / "agent.sh"
    script.write_text("#!/usr/bin/nope-interpreter -x\n")
    script.chmod(0o755)
    with pytest.raises(ProgramMissingError, match="its interpreter /usr/bin/nope-interpreter is"):
        HostProcesses().start(("./agent.sh",), prompt="", environment={}, folder=str(tmp_path))
    script.write_text("#!/bin/sh\n")
    assert program_search.find_missing_interpreter("./agent.sh", str(tmp_path)) == ""
    assert program_search.find_missing_interpreter("./gone.sh", str(tmp_path)) == ""


def test_a_script_without_its_first_line_is_named_so(tmp_path: Path) -> None:
    """The system says only: Exec format error."""
    script = tmp_path / "agent.sh"
    script.write_text("echo done\n")
    script.chmod(0o755)
    with pytest.raises(ProgramMissingError, match="nor a script that starts with `#!`"):
        HostProcesses().start(("./agent.sh",), prompt="", environment={}, folder=str(tmp_path))
