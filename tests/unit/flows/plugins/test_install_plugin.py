"""Install and remove the plugin in a CLI that is a script of the test."""

import os
import subprocess
import sys

import pytest

from rekindle import __version__
from rekindle.cli import main
from rekindle.errors import AgentError
from rekindle.flows.plugins import install_plugin as flow
from rekindle.system.files import user_folder
from rekindle.wiring.plugin_places import find_places

GEMINI = """\
#!{python} -I
import json, os, pathlib, shutil, sys
own = pathlib.Path(os.environ["HOME"], ".gemini")
extension = own / "extensions/rekindle"
assert os.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
assert not os.listdir(), "commands run in an empty folder"
with (own / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
if (own / "broken").exists():
    sys.exit("Warning: a line\\nThe extension is not allowed.")
if sys.argv[2] == "link":
    (own / "trustedFolders.json").write_text('{{"rekindle": 1}}')
    if (own / "half").exists():
        sys.exit("The disk is full.")
    extension.mkdir(parents=True)
    metadata = {{"source": sys.argv[3], "type": "link"}}
    (extension / ".gemini-extension-install.json").write_text(json.dumps(metadata))
    (own / "extensions/extension-enablement.json").write_text('{{"rekindle": 1}}')
elif sys.argv[2] == "uninstall":
    metadata = json.loads((extension / ".gemini-extension-install.json").read_text())
    if not os.path.exists(metadata["source"]):
        sys.exit("Extension not found.")
    shutil.rmtree(extension)
    (own / "trustedFolders.json").write_text("{{}}")
    (own / "extensions/extension-enablement.json").write_text("{{}}")
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    home, programs = tmp_path / "home", tmp_path / "programs"
    (home / ".gemini").mkdir(parents=True)
    programs.mkdir()
    (programs / "gemini").write_text(GEMINI.format(python=sys.executable))
    (programs / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(home))
    for name in ("GEMINI_CLI_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def place(home):
    [(name, place)] = find_places()
    assert name == "gemini"
    return place


def list_files(home):
    paths = [path for path in home.rglob("*") if path.is_file() and path.name != "calls"]
    return {str(path.relative_to(home)): path.read_bytes() for path in paths}


def test_an_installed_plugin_is_removed_without_a_trace(home, place):
    before = list_files(home)
    assert flow.examine_plugin(place).state == "not installed"
    assert not flow.remove_plugin(place)
    assert flow.install_plugin(place)
    report = flow.examine_plugin(place)
    assert (report.state, report.version, report.problem) == ("installed", __version__, "")
    assert flow.install_plugin(place)  # replaces it
    assert flow.remove_plugin(place)
    assert list_files(home) == before
    assert "extensions uninstall rekindle" in (home / ".gemini/calls").read_text()


def test_a_change_by_the_user_stays(home, place):
    """A settings file that changed since the installation is left to the CLI."""
    flow.install_plugin(place)
    (home / ".gemini/settings.json").write_text('{"theme": "dark"}')
    flow.remove_plugin(place)
    assert (home / ".gemini/settings.json").read_text() == '{"theme": "dark"}'


def test_a_plugin_whose_files_are_gone_can_be_replaced(home, place):
    """After an upgrade of Python, the package is in another folder."""
    flow.install_plugin(place)
    metadata = home / ".gemini/extensions/rekindle/.gemini-extension-install.json"
    metadata.write_text('{"source": "/nowhere", "type": "link"}')
    report = flow.examine_plugin(place)
    assert (report.state, report.problem) == ("outdated", "is broken, because its files are gone")
    flow.install_plugin(place)
    assert flow.examine_plugin(place).state == "installed"


def test_a_refusal_of_the_cli_is_shown(home, place):
    """The message has the command and the CLI's last line, and nothing is recorded."""
    (home / ".gemini/broken").touch()
    with pytest.raises(AgentError, match=r"`gemini extensions link .*not allowed") as caught:
        flow.install_plugin(place)
    assert caught.value.hint
    assert not place.record.exists()


def test_a_failed_installation_leaves_no_trace(home, place):
    """Its first half is undone, and a retry does not take it for the user's settings."""
    (home / ".gemini/trustedFolders.json").write_text('{"mine":  1}')
    before = list_files(home)
    (home / ".gemini/half").touch()
    with pytest.raises(AgentError, match="The disk is full"):
        flow.install_plugin(place)
    (home / ".gemini/half").unlink()
    assert list_files(home) == before
    flow.install_plugin(place)
    flow.remove_plugin(place)
    assert list_files(home) == before


def test_an_interrupted_installation_can_be_removed(home, place, monkeypatch):
    """The record is there before the CLI changes anything."""
    run = type(place.program).run

    def interrupt(program, words):
        run(program, words)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(place.program), "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            flow.install_plugin(place)
    assert place.record.exists()
    assert flow.remove_plugin(place)
    assert not place.record.exists()
    assert (home / ".gemini/trustedFolders.json").read_text() == "{}"


def test_uninstall_removes_the_plugin_first(home, place, capsys, monkeypatch):
    """Otherwise the copies of the settings would be lost."""
    # Without a folder of its own, it would also remove what other tests have left.
    monkeypatch.setattr(user_folder, "_find_home", lambda _: home)
    before = list_files(home)
    flow.install_plugin(place)
    assert main.run(["uninstall", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "the plugin in Gemini CLI" in shown
    assert main.run(["uninstall", "--yes"]) == 0
    assert list_files(home) == before


@pytest.mark.heavy
def test_an_agent_cannot_install_it(home, tmp_path):
    """An agent could trust its own hooks with it."""
    marks = {"REKINDLE_LAUNCH": "4f1c", "REKINDLE_FOLDER": str(tmp_path / "agents/trades")}
    for command in ("install", "remove"):
        argv = [sys.executable, "-I", "-m", "rekindle", "plugin", command]
        ended = subprocess.run(argv, env=os.environ | marks, capture_output=True, check=False)
        assert ended.returncode == 14
        assert b"called by agent trades" in ended.stderr
    assert not (home / ".gemini/calls").exists()


def test_a_missing_cli_is_named(home, capsys):
    assert main.run(["plugin", "install", "codex", "--trust"]) == 9
    assert "codex could not be started: it is not on the PATH" in capsys.readouterr().err
