"""Folders without a manifest in which a person starts a CLI that has the plugin."""

import shutil
import subprocess

import pytest

from rekindle import config
from rekindle.cli import main
from rekindle.errors import UnsafePathError
from rekindle.wiring import session_project
from rekindle.wiring.access.trust_checks import accept_folder, is_trusted, list_trusted
from rekindle.wiring.session_project import RECORD_VARIABLE, prepare_folder

EVERY_SESSION = "claude-code"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home/work/My Parser").mkdir(parents=True)
    return tmp_path / "home"


def prepare(place, home):
    return prepare_folder(place, EVERY_SESSION, home)


def test_a_folder_in_the_home_folder_is_set_up_once(home, monkeypatch, capsys):
    """Commands then work there, although it has no rekindle.yaml."""
    folder = home / "work/My Parser"
    assert prepare(folder, home) == folder
    assert prepare(folder, home) is None
    assert is_trusted(folder)
    assert [path.name for path in folder.iterdir()] == [".rekindle"]
    assert (folder / ".rekindle/.gitignore").read_text() == "*\n"
    (folder / "deep").mkdir()
    assert prepare(folder / "deep", home) is None
    assert config.load_project(folder / "deep").declared_agents == ["my-parser"]
    monkeypatch.chdir(folder / "deep")
    assert main.run(["status"]) == 0
    assert capsys.readouterr().out.startswith("my-parser  (claude-code)\n")
    assert main.run(["doctor"]) == 0
    assert "`rekindle init`" in capsys.readouterr().out
    assert main.run(["hooks", "install"]) == 0


def test_init_replaces_the_manifest_and_keeps_the_agent(home, monkeypatch, capsys):
    folder = home / "work/My Parser"
    prepare(folder, home)
    monkeypatch.chdir(folder)
    assert main.run(["loops", "add", "kept", "It stays."]) == 0
    assert main.run(["init", "--yes", "--harness", "codex"]) == 0, capsys.readouterr().err
    project = config.load_project(folder)
    assert {name: agent.harness for name, agent in project.manifest.agents.items()} == {
        "my-parser": "codex"
    }
    capsys.readouterr()
    assert main.run(["loops"]) == 0
    assert "It stays." in capsys.readouterr().out


def test_a_manifest_that_comes_later_is_not_trusted(home, monkeypatch, capsys):
    """The user has accepted that sessions are recorded, but no command from the repository."""
    folder = home / "work/My Parser"
    prepare(folder, home)
    text = "version: 1\nagents: {my-parser: {harness: command, command: [./evil], prompt: P}}\n"
    (folder / "rekindle.yaml").write_text(text)
    (folder / "P").write_text("Work.\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("REKINDLE_TRUST", raising=False)
    assert not is_trusted(folder)
    assert folder not in list_trusted()
    assert main.run(["run"]) == 11
    assert "evil" not in capsys.readouterr().out
    accept_folder(folder)
    assert is_trusted(folder)
    assert folder in list_trusted()


def test_a_folder_whose_records_were_removed_is_set_up_again(home, monkeypatch):
    """After `rm -rf .rekindle`, the next session is recorded again."""
    folder = home / "work/My Parser"
    prepare(folder, home)
    shutil.rmtree(folder / ".rekindle")
    assert prepare(folder, home) == folder
    monkeypatch.chdir(folder)
    assert main.run(["loops", "add", "kept", "It stays."]) == 0


def test_a_git_repository_is_one_project(home, tmp_path):
    """It may be anywhere, and a session below its top belongs to it."""
    repository = tmp_path / "srv/repository"
    (repository / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    assert prepare(repository / "src", home) == repository


@pytest.mark.parametrize("place", ["home", ".", "tmp"])
def test_folders_that_are_not_a_project_are_left_alone(place, home, tmp_path):
    """The home folder and those above it contain all projects; others belong to programs."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / ".git").mkdir()  # a repository around the home folder does not count
    if place == "tmp":
        (tmp_path / ".git").rmdir()
    assert prepare(tmp_path / place, home) is None
    assert not (tmp_path / place / ".rekindle").exists()


def test_a_folder_that_came_with_files_of_rekindle_is_not_trusted(home):
    """A cloned repository could bring a relay of its own."""
    folder = home / "work/My Parser"
    (folder / ".rekindle").mkdir()
    assert prepare(folder, home) is None
    assert not is_trusted(folder)


@pytest.mark.parametrize("name", [".rekindle", "rekindle.yaml"])
def test_a_link_to_nowhere_is_not_trusted(name, home, tmp_path):
    """A cloned repository could bring it, and fill its target later."""
    folder = home / "work/My Parser"
    (folder / name).symlink_to(tmp_path / "later")
    assert prepare(folder, home) is None
    assert not is_trusted(folder)
    assert not (tmp_path / "later").exists()


def test_a_folder_that_cannot_be_set_up_is_not_trusted(home, tmp_path, monkeypatch):
    """A link that appears after the check is refused before the trust is recorded."""
    folder = home / "work/My Parser"
    (folder / ".rekindle").symlink_to(tmp_path / "later")
    monkeypatch.setattr(session_project, "has_anything_to_trust", lambda folder: False)
    with pytest.raises(UnsafePathError):
        prepare(folder, home)
    assert not is_trusted(folder)


def test_a_variable_limits_the_plugin_to_projects(home, monkeypatch):
    monkeypatch.setenv(RECORD_VARIABLE, "projects")
    assert prepare(home / "work", home) is None
