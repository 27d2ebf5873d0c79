"""`rekindle forget` and `rekindle uninstall` leave no file behind."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from rekindle.cli import main
from rekindle.errors import OwnershipError
from rekindle.stores.files.supervisor_locks import find_outer_lock
from rekindle.stores.folders import private_files
from rekindle.system import crontab
from rekindle.system.files import file_locks, user_folder
from rekindle.system.git.repository import Repository
from rekindle.wiring import forget_project
from rekindle.wiring.access import trust_checks
from rekindle.wiring.access.trust_checks import accept_folder

TESTS = Path(__file__).parents[3]
CRONTAB = """\
#!{python}
import pathlib, sys
table = pathlib.Path({table!r})
if sys.argv[1] == "-l":
    sys.stdout.write(table.read_text()) if table.exists() else sys.exit(1)
elif sys.argv[1] == "-r":
    table.unlink()
else:
    table.write_text(sys.stdin.read())
"""
MANIFEST = """\
version: 1
agents:
  desk: {harness: command, command: ["true"], cycles: 1, until: ["true"], dir: desk}
  lab: {harness: claude-code, dir: lab}
  root: {harness: codex}
"""
SCENARIO = """
import contextlib, io, json, os, sys
from pathlib import Path
from own_user_folder import isolate_user_folder
from rekindle.cli import main
from rekindle.system.files import user_folder

isolate_user_folder()
base, how = Path(sys.argv[1]), sys.argv[2:]

def tree():
    found = [*base.rglob("*"), *user_folder.find_user_folder().rglob("*")]
    files = {str(path): path.read_bytes().decode('latin-1') for path in found if path.is_file()}
    return files, sorted(str(path) for path in found if path.is_dir())

def rekindle(*words, code=0):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        ended = main.run(list(words))
    assert ended == code, (words, said.getvalue())
    return said.getvalue()

os.chdir(base / "project")
before = tree()
rekindle("run", "desk")
rekindle("hooks", "install", "--all")
rekindle("hooks", "install", "--for", "project", "--agent", "lab")
rekindle("service", "install", "--kind", "systemd")
rekindle("service", "install", "--kind", "systemd", "--briefs")
table = base / "table"
line = f"@daily cd {base / 'project'} && rekindle watch --once"
table.write_text(f"@daily backup\\n{line}\\n")
if how[0] == "uninstall":
    rekindle("hooks", "install", "--for", "user", "--harness", "claude-code")
    rekindle("service", "install", "--kind", "systemd", "--all")
used = tree()
listed = rekindle(*how, "--dry-run")
assert tree() == used, "listing removes nothing"
rekindle(*how, code=2)
assert tree() == used, "there is no one to ask"
told = rekindle(*how, "--yes")
found = {"before": before, "used": used, "after": tree(), "listed": listed, "told": told}
json.dump(found, sys.stdout)
"""


@pytest.fixture
def base(tmp_path):
    """A home, a project with files of the user's own, and a crontab of another program."""
    for name in ("home/.config/systemd/user", "home/.local/share", "project/desk", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project/lab/.claude").mkdir(parents=True)
    (tmp_path / "project/lab/.claude/settings.json").write_text('{"model": "opus"}')
    (tmp_path / "home/.claude").mkdir()
    (tmp_path / "home/.claude/settings.json").write_text('{\n  "theme": "dark"\n}\n')
    (tmp_path / "project/rekindle.yaml").write_text(MANIFEST)
    (tmp_path / "project/PROMPT.md").write_text("Ship it.\n")
    (tmp_path / "table").write_text("@daily backup\n")
    crontab = tmp_path / "bin/crontab"
    crontab.write_text(CRONTAB.format(python=sys.executable, table=str(tmp_path / "table")))
    crontab.chmod(stat.S_IRWXU)
    return tmp_path


@pytest.mark.parametrize("how", [("forget", "."), ("uninstall",)])
def test_no_trace_is_left(base, how):
    """Hooks of three agents and of the user, units, cron, locks, records and state are removed."""
    ran = subprocess.run(
        [sys.executable, "-c", dedent(SCENARIO), str(base), *how],
        env={
            "PATH": f"{base / 'bin'}:/usr/bin:/bin",
            "HOME": str(base / "home"),
            "PYTHONPATH": str(TESTS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "REKINDLE_TRUST": "1",
            "LC_ALL": "C.UTF-8",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    own = str(user_folder.find_user_folder())
    assert any(path.startswith(own) for path in found["used"][0])
    after = {path: text for path, text in found["after"][0].items() if not path.startswith(own)}
    assert after == found["before"][0]
    kept = [path for path in found["after"][0] if path.startswith(own)]
    if how[0] == "uninstall":
        assert kept == []
        assert found["after"] == found["before"]
    else:  # the program of hooks does not belong to the project
        assert all(Path(path).parent.name == "programs" for path in kept), kept
    assert found["listed"].count("\n") == found["told"].count("✓")


def locked(tmp_path, name):
    folder = tmp_path / "project"
    (folder / f".rekindle/agents/{name}/run").mkdir(parents=True)
    accept_folder(folder)
    return folder


@pytest.mark.parametrize("where", ["outside", "inside", "daemon"])
def test_what_runs_is_not_forgotten(tmp_path, where, capfd):
    """A supervisor holds two locks, the daemon one; nothing is removed."""
    folder = locked(tmp_path, "trades")
    outside = find_outer_lock(folder, "trades")
    user_folder.make_user_folder("locks")
    path = {
        "outside": outside.path,
        "inside": folder / ".rekindle/agents/trades/run/supervisor",
        "daemon": folder / ".rekindle/daemon",
    }[where]
    with file_locks.hold_lock(path, 0.0):
        assert main.run(["forget", str(folder), "--yes"]) == OwnershipError.exit_code
    said = capfd.readouterr().err
    assert ("its daemon" if where == "daemon" else "trades") in said
    assert trust_checks.is_trusted(folder)
    assert (folder / ".rekindle").exists()
    assert main.run(["forget", str(folder), "--yes"]) == 0
    assert not (folder / ".rekindle").exists()


def test_a_folder_that_is_gone_is_forgotten(tmp_path, capfd):
    """It is found by its path, and by the recorded device and inode."""
    folder = locked(tmp_path, "trades")
    lock = find_outer_lock(folder, "trades").path
    user_folder.make_user_folder("locks")
    lock.write_text("")
    records = private_files.find_private_project(folder).path
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/.rekindle").rename(tmp_path / "kept")
    (tmp_path / "elsewhere").rmdir()
    assert main.run(["forget", str(folder), "--yes"]) == 0
    assert not records.exists()
    assert not lock.exists()
    assert (tmp_path / "kept").exists()
    capfd.readouterr()
    assert main.run(["forget", str(folder), "--yes"]) == 0
    assert "No trace of" in capfd.readouterr().out


@pytest.mark.parametrize("is_repository", [False, True])
def test_the_branches_of_the_audit_trail_are_named_in_a_repository(tmp_path, is_repository, capfd):
    folder = locked(tmp_path, "trades")
    if is_repository:
        (tmp_path / ".git").mkdir()
    assert main.run(["forget", str(folder), "--yes"]) == 0
    assert ("git branches: rekindle/trades/" in capfd.readouterr().out) == is_repository


def test_the_configuration_for_git_is_removed_with_its_repository_alone(tmp_path, capfd):
    """Other projects keep theirs, which running agents use."""
    kept = []
    for name in ("other", "project"):
        subprocess.run(["git", "init", "-q", str(tmp_path / name)], check=True)
        before = set(user_folder.find_user_folder().glob("repositories/*"))
        Repository(tmp_path / name, timeout=30).tip("refs/heads/main")
        kept += set(user_folder.find_user_folder().glob("repositories/*")) - before
    assert len(kept) == 2
    locked(tmp_path, "trades")
    assert main.run(["forget", str(tmp_path / "project"), "--yes"]) == 0
    assert [path.exists() for path in kept] == [True, False]
    assert "configuration for git" in capfd.readouterr().out


def test_history_is_kept_on_request(tmp_path):
    folder = locked(tmp_path, "trades")
    assert main.run(["forget", str(folder), "--yes", "--keep-history"]) == 0
    assert (folder / ".rekindle/agents/trades").exists()
    assert not trust_checks.is_trusted(folder)


def test_a_link_in_the_place_of_the_state_leads_nowhere(tmp_path):
    """The link is removed, and its target stays."""
    (tmp_path / "project").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    (tmp_path / "project/.rekindle").symlink_to(tmp_path / "mine")
    accept_folder(tmp_path / "project")
    for trace in list(forget_project.find_traces(tmp_path / "project")):
        trace.remove()
    assert not (tmp_path / "project/.rekindle").is_symlink()
    assert (tmp_path / "mine/file").read_text() == "mine"


def test_a_link_that_appears_while_the_state_is_removed_is_not_followed(tmp_path, monkeypatch):
    """A process of the agent exchanges `.rekindle` for a link at the first removal."""
    state, mine = tmp_path / "project/.rekindle", tmp_path / "mine"
    for folder in (state, mine):
        (folder / "tree").mkdir(parents=True)
        for name in ("a", "b", "tree/file"):
            (folder / name).write_text("")
    before = sorted(mine.rglob("*"))
    unlink, swapped = os.unlink, []

    def swap(*args, **options):
        if not swapped:
            swapped.append(state.rename(tmp_path / "project/moved"))
            state.symlink_to(mine)
        unlink(*args, **options)

    accept_folder(tmp_path / "project")
    traces = list(forget_project.find_traces(tmp_path / "project"))
    monkeypatch.setattr(os, "unlink", swap)
    traces[-1].remove()
    assert swapped
    assert sorted(mine.rglob("*")) == before
    assert list(swapped[0].iterdir()) == []


def test_cron_lines_with_other_commands_are_shown_and_stay(tmp_path, monkeypatch, capfd):
    folder = locked(tmp_path, "trades")
    mixed = f"@daily cd {folder} && rekindle watch --once; ./backup.sh"
    lines = [
        f"@daily cd {folder} && rekindle watch --once",
        mixed,
        f"@daily tar c {folder}/rekindle",
    ]
    monkeypatch.setattr(crontab, "read_crontab", lambda: lines)
    monkeypatch.setattr(crontab, "write_crontab", lines.__init__)
    assert main.run(["forget", str(folder), "--yes"]) == 0
    assert lines == [mixed, f"@daily tar c {folder}/rekindle"]
    assert f"! not removed: line in your crontab: {mixed}: " in capfd.readouterr().out


def test_settings_that_cannot_be_read_are_shown_and_stay(tmp_path, capfd):
    """An agent that breaks its settings does not keep the rest from being removed."""
    folder = locked(tmp_path, "trades")
    (folder / ".claude").mkdir()
    (folder / ".claude/settings.json").write_text("{")
    assert main.run(["forget", str(folder), "--yes"]) == 0
    said = capfd.readouterr().out
    assert f"! not removed: hooks in {folder}/.claude/settings.json, if there are any: " in said
    assert (folder / ".claude/settings.json").read_text() == "{"
    assert not (folder / ".rekindle").exists()
    assert not trust_checks.is_trusted(folder)
