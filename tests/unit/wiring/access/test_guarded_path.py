"""Which PATH a CLI and its agent's commands get, if a folder of it is in the workspace."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from rekindle import config
from rekindle.documents.hooks.hook_settings import HookFiles
from rekindle.documents.launches.launch_types import Capabilities
from rekindle.system.processes import program_search
from rekindle.wiring.access.guarded_path import (
    GuardedPath,
    guard_path,
)
from rekindle.wiring.access.protected_paths import list_protected
from rekindle.wiring.open_store import HARNESSES, open_store
from rekindle.wiring.summarizer_setup import make_headless

DENIES, SPLITS, NEITHER = (
    Capabilities(denies_paths=True),
    Capabilities(splits_path=True),
    Capabilities(),
)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(program_search, "_workspaces", set())
    folder = tmp_path / "work"
    (folder / ".venv/bin").mkdir(parents=True)
    program_search.exclude_folders(folder)
    return folder


def test_a_cli_that_denies_paths_keeps_the_order(work: Path) -> None:
    venv = f"{work}/.venv/bin"
    found = guard_path(f"{venv}:bin:/usr/bin", work, DENIES, stays=True)
    assert found == GuardedPath(f"{venv}:/usr/bin", "", (venv,))


def test_a_folder_behind_a_link_is_denied_by_both_names(work: Path, tmp_path: Path) -> None:
    link, venv = tmp_path / "link", str(work / ".venv/bin")
    link.symlink_to(venv)
    found = guard_path(f"{link}:/usr/bin", work, DENIES, stays=False)
    assert found == GuardedPath(f"{link}:/usr/bin", "", (str(link), venv))


def test_a_folder_that_must_be_written_is_last(work: Path) -> None:
    """The agent works in it: denying it would deny the work."""
    found = guard_path(f"{work}:/usr/bin", work, DENIES, stays=False)
    assert found == GuardedPath(f"/usr/bin:{work}", "", (), (str(work),))


def test_a_folder_with_a_program_that_clis_start_is_last(work: Path) -> None:
    """It may load files that are not denied, as node does."""
    venv = work / ".venv/bin"
    (venv / "node").touch()
    found = guard_path(f"{venv}:/usr/bin", work, DENIES, stays=False)
    assert found == GuardedPath(f"/usr/bin:{venv}", "", (str(venv),), (str(venv),))


def test_a_new_cli_is_known_by_its_harness_alone(work: Path, monkeypatch) -> None:
    """Its program counts as one that CLIs start, and its settings folder is protected."""
    files = HookFiles(program="newcli", folder=".newcli", project="hooks.json", user="hooks.json")
    monkeypatch.setattr(HARNESSES, "working", lambda: [SimpleNamespace(HOOK_FILES=files)])
    venv = work / ".venv/bin"
    (venv / "newcli").touch()
    found = guard_path(f"{venv}:/usr/bin", work, DENIES, stays=False)
    assert found.cli == f"/usr/bin:{venv}"
    assert str(work / ".newcli") in list_protected(work, work)


@pytest.mark.parametrize("folder", [".claude", ".codex", ".gemini"])
def test_the_settings_of_every_cli_are_protected(work: Path, tmp_path: Path, folder: str) -> None:
    listed = list_protected(tmp_path, work)
    assert {str(work / folder), str(tmp_path / folder)} <= {*listed}


def test_commands_of_the_agent_have_a_path_of_their_own(work: Path) -> None:
    """In a terminal there is none: commands approved there run outside the sandbox."""
    venv = f"{work}/.venv/bin"
    path, ordered = f"{venv}:.:/usr/bin", f"/usr/bin:{venv}"
    assert guard_path(path, work, SPLITS, stays=False) == GuardedPath(ordered, f"{venv}:/usr/bin")
    assert guard_path(path, work, SPLITS, stays=True) == GuardedPath(ordered, last=(venv,))
    assert guard_path(path, work, NEITHER, stays=False) == GuardedPath(ordered, last=(venv,))


@pytest.mark.parametrize("can", [DENIES, SPLITS, NEITHER])
def test_a_path_outside_the_workspace_stays_as_it_is(work: Path, can: Capabilities) -> None:
    assert guard_path("/b:/a", work, can, stays=False) == GuardedPath("/b:/a")


def test_a_cli_that_is_asked_for_a_summary_finds_the_workspace_last(work: Path) -> None:
    (work / "rekindle.yaml").write_text("version: 1\nagents: {trades: {harness: codex}}\n")
    project = config.load_project(work)
    environ = {"PATH": f"{work}/.venv/bin:/usr/bin"}
    asked = make_headless(project, open_store(project), "trades", environ)
    assert asked is not None
    assert asked.environment["PATH"] == f"/usr/bin:{work}/.venv/bin"
