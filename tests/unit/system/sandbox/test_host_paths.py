"""The files of a host that a sandbox shows: the system, programs, and a CLI's own state."""

import os
import sys
from pathlib import Path

import pytest

import rekindle
from rekindle.documents.launches.sandbox_needs import StateFolder
from rekindle.errors import StoreError
from rekindle.system.sandbox import host_paths


def make(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_system_folders_are_shown_and_system_links_are_repeated(tmp_path, monkeypatch):
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "lib64").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    names = {name: str(tmp_path / name) for name in ("usr", "missing", "bin", "lib64", "sbin")}
    monkeypatch.setattr(host_paths, "_SYSTEM", (names["usr"], names["missing"]))
    monkeypatch.setattr(host_paths, "_LINKED", (names["bin"], names["lib64"], names["sbin"]))
    folders, links = host_paths.find_system()
    assert folders == (names["usr"], names["lib64"])
    assert links == {names["bin"]: "usr/bin"}


def test_the_runtime_is_this_python_and_this_package():
    found = host_paths.find_runtime()
    assert os.path.realpath(sys.prefix) in found
    assert str(Path(rekindle.__file__).parent) in found
    assert "/" not in found


def test_only_folders_of_the_path_that_do_not_show_the_home_are_programs(tmp_path):
    home = tmp_path / "users/me"
    for name in ("users/me/bin", "tools"):
        (tmp_path / name).mkdir(parents=True)
    folders = [home / "bin", tmp_path / "tools", tmp_path / "gone", home, tmp_path / "users"]
    path = os.pathsep.join([*map(str, folders), "relative", ""])
    found = host_paths.find_programs((), path, str(home))
    assert found == (str(home / "bin"), str(tmp_path / "tools"))


def test_a_link_to_a_program_shows_the_link_and_its_package(tmp_path):
    program = make(tmp_path / "lib/node_modules/cli/run.js")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links/cli"
    link.symlink_to(program)
    found = host_paths.find_programs((str(link), "--flag", "/missing"), "", str(tmp_path / "home"))
    assert set(found) == {str(link), program, str(tmp_path / "lib/node_modules")}


@pytest.mark.parametrize(
    ("program", "also", "shown"),
    [
        ("venv/bin/tool", "venv/pyvenv.cfg", ["venv"]),
        ("opt/bin/tool", "opt/lib/x.so", ["opt/bin", "opt/lib"]),
        ("opt/bin/tool", "opt/other", ["opt/bin"]),
        ("opt/tool", "opt/secret", []),
    ],
)
def test_a_program_is_shown_with_what_it_needs(tmp_path, program, also, shown):
    file = make(tmp_path / program)
    make(tmp_path / also)
    found = host_paths.find_programs((file,), "", str(tmp_path / "home"))
    assert set(found) == {file, *(str(tmp_path / name) for name in shown)}


NEEDS = {
    "folders": ("sessions",),
    "settings": {"config.toml": "# settings\n"},
    "settings_folders": ("plugins",),
    "state": ("history*",),
}


def test_the_missing_parts_of_an_open_state_are_created(tmp_path):
    state = tmp_path / "home/.cli"
    needs = StateFolder(is_closed=False, beside=(".cli.json",), **NEEDS)
    made = host_paths.prepare_state(state, needs, tmp_path / "home")
    assert (state / "config.toml").read_text() == "# settings\n"
    assert sorted(path.name for path in state.iterdir()) == ["config.toml", "plugins", "sessions"]
    assert (made.folder, made.is_closed, made.write) == (str(state), False, ())
    expected = {str(state / "config.toml"), str(state / "plugins")}
    assert set(made.read) == {*expected, str(tmp_path / "home/.cli.json")}


def test_existing_settings_are_not_replaced_and_history_stays_writable(tmp_path):
    make(tmp_path / ".cli/config.toml", "mine")
    make(tmp_path / ".cli/history.jsonl")
    made = host_paths.prepare_state(
        tmp_path / ".cli", StateFolder(is_closed=False, **NEEDS), tmp_path
    )
    assert (tmp_path / ".cli/config.toml").read_text() == "mine"
    assert str(tmp_path / ".cli/history.jsonl") not in made.read


def test_only_the_named_parts_of_a_closed_state_are_writable(tmp_path):
    make(tmp_path / ".cli/history.jsonl")
    make(tmp_path / ".cli/other")
    made = host_paths.prepare_state(
        tmp_path / ".cli", StateFolder(is_closed=True, **NEEDS), tmp_path
    )
    expected = {str(tmp_path / ".cli/history.jsonl"), str(tmp_path / ".cli/sessions")}
    assert (made.is_closed, set(made.write), made.read) == (True, expected, ())
    assert not (tmp_path / ".cli/config.toml").exists()


def test_a_state_that_cannot_be_created_is_an_error(tmp_path):
    make(tmp_path / "file")
    with pytest.raises(StoreError):
        host_paths.prepare_state(tmp_path / "file/.cli", StateFolder(state=()), tmp_path)


def test_links_and_missing_files_are_not_real(tmp_path):
    file = make(tmp_path / "folder/file")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "dangling").symlink_to("gone")
    paths = [file, *(str(tmp_path / name) for name in ("link", "link/file", "dangling", "gone"))]
    status = Path(file).stat()
    assert host_paths.identify_real(paths) == {file: f"{status.st_dev}:{status.st_ino}"}


def test_on_a_host_an_agent_names_only_programs_and_its_own_files(tmp_path):
    home = tmp_path / "users/me"
    secret, program = make(home / ".ssh/id"), make(home / "tools/cli")
    own, other = make(home / "hosts/own/work/agent.py"), make(home / "hosts/other/work/result")
    Path(program).chmod(0o755)
    Path(other).chmod(0o755)
    elsewhere, link = make(tmp_path / "agents/agent.py"), tmp_path / "link"
    Path(elsewhere).chmod(0o755)
    link.symlink_to(secret)
    key = make(tmp_path / "run/model-keys/default")
    words = (secret, program, own, other, elsewhere, str(link), key)
    assert {secret, other, str(link), key} < set(host_paths.find_programs(words, "", str(home)))
    found = host_paths.find_programs(words, "", str(home), str(home / "hosts/own"))
    assert found == (program, own, elsewhere)


@pytest.mark.parametrize(
    ("links", "word"),
    [
        ({"node_modules": "."}, "node_modules/.local/bin/claude"),
        ({"node_modules": ".local"}, "node_modules/bin/claude"),
        ({"a/bin": ".local/bin", "a/lib": ".ssh"}, "a/bin/claude"),
        ({"a/bin/claude": ".local/bin/claude", "a/lib": ".ssh"}, "a/bin/claude"),
        ({"a/lib": ".ssh"}, "a/bin/own"),
        ({"a/lib": "hosts/other"}, "a/bin/own"),
    ],
)
def test_on_a_host_a_link_in_the_workspace_shows_no_folder_of_the_home(tmp_path, links, word):
    home = tmp_path / "users/me"
    (home / ".ssh").mkdir(parents=True)
    (home / "hosts/other").mkdir(parents=True)
    work = home / "hosts/own/work"
    for program in (home / ".local/bin/claude", work / "a/bin/own"):
        if program.name == "claude" or "a/bin" not in links:
            make(program)
            program.chmod(0o755)
    for name, target in links.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).symlink_to(home / target)
    found = host_paths.find_programs((str(work / word),), "", str(home), str(home / "hosts/own"))
    shown = [Path(one).resolve() for one in found]
    assert (work / word).resolve() in shown
    unfit = (home, home / ".ssh", home / "hosts/other", home / ".local")
    assert not [one for one in shown if any(other.is_relative_to(one) for other in unfit)]
    assert not [one for one in found if Path(one).resolve() != Path(one)]


def test_on_a_host_a_program_shows_neither_the_home_nor_the_other_agents(tmp_path):
    for name in ("bin/tool", "venv/bin/tool", "home/bin/tool"):
        make(tmp_path / name)
        (tmp_path / name).chmod(0o755)
    for name in ("venv", "home"):
        make(tmp_path / name / "pyvenv.cfg")
    (tmp_path / "lib/own/work").mkdir(parents=True)

    def find(name, project):
        words = (str(tmp_path / name),)
        return set(host_paths.find_programs(words, "", str(tmp_path / "home"), str(project)))

    assert find("bin/tool", tmp_path / "lib/own") == {
        str(tmp_path / n) for n in ("bin/tool", "bin")
    }
    assert find("venv/bin/tool", tmp_path / "venv/hosts/own") == {str(tmp_path / "venv/bin/tool")}
    assert find("home/bin/tool", tmp_path / "hosts/own") == {str(tmp_path / "home/bin/tool")}


def test_on_a_host_a_link_to_a_program_shows_its_environment(tmp_path):
    python = make(tmp_path / "python")
    Path(python).chmod(0o755)
    make(tmp_path / "venv/pyvenv.cfg")
    link = tmp_path / "venv/bin/python"
    link.parent.mkdir()
    link.symlink_to(python)
    own = tmp_path / "hosts/own"
    found = host_paths.find_programs((str(link),), "", str(tmp_path / "home"), str(own))
    assert set(found) == {str(link), python, str(tmp_path / "venv")}


def test_only_secrets_that_exist_are_hidden_with_their_targets(tmp_path, monkeypatch):
    monkeypatch.setattr(host_paths, "_SECRETS", ())
    key, link = make(tmp_path / "keys/client.key"), tmp_path / "client.key"
    link.symlink_to(key)
    assert host_paths.find_secrets([str(link), str(tmp_path / "gone")]) == (str(link), key)
