"""`doctor` and `run` warn about programs outside the sandbox that an agent could change."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rekindle
from rekindle import config
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
    words = f"trades looks for programs in {project.path}/bin last"
    assert words in ran.stderr
    assert "trades does not get GH_TOKEN from your environment" in ran.stderr
    assert "not printed" not in ran.stderr
    assert words in doctor.stdout
    assert "`env: {PATH: $PATH}`" in doctor.stdout
