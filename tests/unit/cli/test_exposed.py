"""`doctor` and `run` warn about programs outside the sandbox that an agent could change."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import rekindle
from rekindle import config
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search
from rekindle.wiring.access import protected_paths

MANIFEST = "version: 1\nagents:\n  trades: {harness: claude-code}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.Project:
    monkeypatch.setattr(program_search, "_workspaces", set())
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    return config.load_project(tmp_path)


def test_nothing_is_exposed(project: config.Project) -> None:
    assert protected_paths.explain_exposed(project, "trades") == ""


def test_programs_in_the_project_are_named(
    project: config.Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example is a virtual environment in the project that runs Rekindle."""
    monkeypatch.setattr(sys, "executable", str(project.path / ".venv/bin/python"))
    assert "the Python that runs Rekindle" in protected_paths.explain_exposed(project, "trades")
    monkeypatch.setattr(rekindle, "__file__", str(project.path / "src/rekindle/__init__.py"))
    assert "the package rekindle" in protected_paths.explain_exposed(project, "trades")


@pytest.fixture
def temporary(
    project: config.Project,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder for temporary files that contains none of Rekindle's own."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(protected_paths, "_TEMPORARY", "/no/such/folder")
    monkeypatch.setenv("TMPDIR", str(folder))
    manifest = "version: 1\nagents:\n  trades: {harness: codex, dir: work}\n"
    (project.path / "rekindle.yaml").write_text(manifest)
    (project.path / "work").mkdir()
    return folder


def test_codex_can_write_to_folders_for_temporary_files(
    project: config.Project, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of Rekindle's own files there is named, with the folder that contains it."""
    project = config.load_project(project.path)
    assert protected_paths.explain_temporary(project, "trades") == ""
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: temporary / "state")
    told = protected_paths.explain_temporary(project, "trades")
    assert told == f"the agent can write to {temporary}, which contains your own Rekindle folder"
    monkeypatch.setattr(sys, "executable", str(temporary / "venv/bin/python"))
    monkeypatch.setenv("PATH", f"/usr/bin:{temporary}/bin:/bin")
    told = protected_paths.explain_temporary(project, "trades")
    assert "the Python that runs Rekindle, your own Rekindle folder" in told
    assert f"the PATH folder {temporary}/bin" in told


@pytest.mark.parametrize("place", ["fixed", "variable", "env"])
def test_every_folder_for_temporary_files_counts(
    project: config.Project, temporary: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The project's manifest and state count if the agent works in a folder below."""
    if place == "fixed":
        monkeypatch.setattr(protected_paths, "_TEMPORARY", str(project.path.parent))
    elif place == "variable":
        monkeypatch.setenv("TMPDIR", str(project.path.parent))
    else:
        text = (project.path / "rekindle.yaml").read_text()
        env = f"env: {{TMPDIR: {project.path.parent}}}"
        (project.path / "rekindle.yaml").write_text(text.replace("dir:", f"{env}, dir:"))
    told = protected_paths.explain_temporary(config.load_project(project.path), "trades")
    assert "the manifest and the state of the project" in told
    assert str(temporary) not in told
    for other in ("{harness: claude-code}", "{harness: codex, persona: reader}"):
        manifest = f"version: 1\nagents:\n  trades: {other}\n"
        manifest += "personas:\n  reader: {permissions: {allowed_tools: [Read]}}\n"
        (project.path / "rekindle.yaml").write_text(manifest)
        loaded = config.load_project(project.path)
        assert protected_paths.explain_temporary(loaded, "trades") == ""


def test_doctor_and_run_say_so(project: config.Project) -> None:
    """Each prints one line with a hint; doctor does not count it as broken."""
    (project.path / "PROMPT.md").write_text("Do it.\n")
    (project.path / "bin").mkdir()
    (project.path / "bin/git").touch()
    environment = {
        "PATH": f"{project.path}/bin:{Path(shutil.which('git') or '/usr/bin/git').parent}",
        "HOME": str(project.path.parent),
        "REKINDLE_TRUST": "1",
        "LC_ALL": "C.UTF-8",
        "GH_TOKEN": "not printed",
    }
    told = [
        subprocess.run(
            [sys.executable, "-I", "-m", "rekindle", *words],
            cwd=project.path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        for words in (["run", "--once"], ["doctor"])
    ]
    ran, doctor = told
    words = f"trades searches {project.path}/bin last for programs"
    assert words in ran.stderr
    assert "trades does not get GH_TOKEN from your environment" in ran.stderr
    assert "not printed" not in ran.stderr
    assert words in doctor.stdout
    assert "`env: {PATH: $PATH}`" in doctor.stdout


def test_doctor_names_a_path_folder_below_tmp(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as programs:
        (tmp_path / "rekindle.yaml").write_text(MANIFEST.replace("claude-code", "codex"))
        ended = subprocess.run(
            [sys.executable, "-I", "-m", "rekindle", "doctor"],
            cwd=tmp_path,
            env={"PATH": f"/usr/bin:/bin:{programs}", "HOME": "/", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert f"the PATH folder {programs}" in ended.stdout
    assert "exclude_slash_tmp" in ended.stdout
