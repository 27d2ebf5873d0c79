"""Settings of agents' own checkouts, folders that are in their way, and locks."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import worktrees
from rekindle import config
from rekindle.cli import main
from rekindle.errors import ManifestError, WorkspaceError
from rekindle.system.files import file_locks, user_folder
from rekindle.thresholds.storage import WORKSPACES_AT_ONCE
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace, check_workspace
from rekindle.wiring.save_work import save_work

KINDS = pytest.mark.parametrize("kind", ["clone", "worktree"])


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "repository" / "project"
    folder.mkdir(parents=True)
    (folder / "shared.txt").write_text("one\n")
    (folder / ".env").write_text("SETTING=1\n")
    (folder / "secrets").mkdir()
    (folder / "secrets/key").write_text("key\n")
    (folder / "linked").symlink_to("secrets")
    (folder / "odd\nname").write_text("odd\n")
    (tmp_path / "repository/.gitignore").write_text("*\n!*.txt\n!*/\n")
    worktrees.git(folder.parent, "init", "-q", "-b", "main")
    worktrees.git(folder.parent, "add", "-A")
    worktrees.git(folder.parent, "commit", "-qm", "one")
    accept_folder(folder)
    return folder


def check(project, settings, *, more=""):
    entry = json.dumps({"harness": "claude-code", **settings})
    (project / "rekindle.yaml").write_text(f"version: 1\nagents:\n  trades: {entry}\n{more}")
    check_workspace(config.load_project(project), "trades")


def own(**settings):
    return {"workspace": "clone", **settings}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"workspace": "here"},
        own(),
        {"workspace": "worktree"},
        own(dir="."),
        own(copy=[".env", "secrets", "secrets/key", "odd\nname"], prepare="true"),
    ],
)
def test_these_settings_are_accepted(project, settings):
    check(project, settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"copy": [".env"]}, "`copy:` is only for an agent with its own clone"),
        ({"prepare": "true"}, "`prepare:` is only for an agent with its own clone"),
        ({"workspace": "here", "copy": [".env"]}, "`copy:` is only for"),
        (own(dir="../.."), "`dir:` is outside the repository"),
        (own(relay="relay.md"), "cannot use a `relay:` of your checkout"),
        (own(copy=[""]), "is not a path inside the project"),
        (own(copy=["/etc/hostname"]), "is not a path inside the project"),
        (own(copy=["secrets/../../x"]), "is not a path inside the project"),
        (own(copy=[".git/config"]), "is in the .rekindle or .git folder"),
        (own(copy=[".rekindle"]), "is in the .rekindle or .git folder"),
        (own(copy=["secrets/.git"]), "is in the .rekindle or .git folder"),
        (own(copy=["missing"]), "`copy: missing` does not exist"),
        (own(copy=["linked"]), "leads through a link"),
        (own(copy=["linked/key"]), "leads through a link"),
        (own(copy=["no\nfile"]), "`copy: no file` does not exist"),
    ],
)
def test_these_settings_are_refused(project, settings, words):
    with pytest.raises(ManifestError) as refused:
        check(project, settings)
    assert words in str(refused.value)
    assert "rekindle.yaml:3: agent trades: " in str(refused.value)
    assert refused.value.hint


def test_a_fleet_needs_no_clones(project):
    with pytest.raises(ManifestError, match="has no effect on a fleet"):
        check(project, own(), more="fleet: {address: 'localhost:7233'}\n")


def test_a_folder_without_a_repository_is_refused(tmp_path):
    with pytest.raises(ManifestError, match="needs a git repository") as refused:
        check(tmp_path, own())
    assert refused.value.hint == "create one: git init"


def test_a_repository_without_a_commit_is_refused(tmp_path):
    worktrees.git(tmp_path, "init", "-q")
    with pytest.raises(ManifestError, match="no commit yet") as refused:
        check(tmp_path, own())
    assert "git commit" in refused.value.hint


def test_a_repository_with_a_line_break_in_its_path_is_refused(tmp_path):
    folder = tmp_path / "odd\nname"
    folder.mkdir()
    worktrees.git(folder, "init", "-q")
    with pytest.raises(ManifestError, match="contains a line break"):
        check(folder, own())


def make_workspace(project, kind="clone"):
    return AgentWorkspace(project, project.parent, "trades", kind)


def find_aside(workspace):
    return list(workspace.folder.parent.glob("trades.[0-9]*"))


@KINDS
@pytest.mark.parametrize("damage", ["no .git", "no record", "unreadable record"])
def test_a_used_folder_is_moved_aside_and_never_removed(project, kind, damage):
    workspace = make_workspace(project, kind)
    workspace.open((), lambda: None, updates=True)
    (workspace.folder / "work.txt").write_text("work\n")
    record = workspace.folder.with_name("trades.json")
    if damage == "no .git":
        shutil.move(workspace.folder / ".git", project / "git-folder")
    elif damage == "no record":
        record.unlink()
    else:
        record.write_text('{"kind"')
    assert workspace.open((), lambda: None, updates=True)
    [aside] = find_aside(workspace)
    assert (aside / "work.txt").read_text() == "work\n"
    assert not (workspace.folder / "work.txt").exists()
    assert worktrees.git(workspace.folder, "status", "--porcelain") == b""


@KINDS
def test_a_half_created_folder_is_replaced(project, kind):
    workspace, prepared = make_workspace(project, kind), []

    def prepare():
        prepared.append((workspace.folder / "leftover").exists())
        (workspace.folder / "leftover").touch()
        if len(prepared) == 1:
            raise WorkspaceError("failed", "not prepared", hint="")

    with pytest.raises(WorkspaceError):
        workspace.open((), prepare, updates=True)
    assert workspace.open((), prepare, updates=True)
    assert prepared == [False, False]
    assert find_aside(workspace) == []


def test_an_empty_folder_is_used(project):
    workspace = make_workspace(project)
    workspace.folder.mkdir(parents=True)
    assert workspace.open((), lambda: None, updates=True)
    assert find_aside(workspace) == []


def test_copied_files_keep_their_mode_and_links(project):
    (project / "secrets/key").chmod(0o600)
    (project / "secrets/link").symlink_to("key")
    workspace = make_workspace(project)
    workspace.open((".env", "secrets"), lambda: None, updates=True)
    copied = workspace.folder / "project/secrets"
    assert (workspace.folder / "project/.env").read_text() == "SETTING=1\n"
    assert (copied / "key").stat().st_mode & 0o777 == 0o600
    assert (copied / "link").readlink() == Path("key")


@KINDS
@pytest.mark.parametrize("rule", ["text eol=crlf", "working-tree-encoding=UTF-16", ""])
def test_a_new_folder_gets_the_bytes_of_the_snapshot(project, kind, rule):
    """Git's conversion of line endings and encodings applies to commits, not to snapshots."""
    top = project.parent
    (top / ".gitattributes").write_text(f"*.txt {rule}\n" if rule else "")
    worktrees.git(top, "config", "core.autocrlf", "true" if not rule else "input")
    worktrees.git(top, "add", "-f", ".gitattributes")
    worktrees.git(top, "commit", "-qm", "attributes")
    workspace = make_workspace(project, kind)
    workspace.open((), lambda: None, updates=True)
    written = {
        "shared.txt": b"unix\n",
        "mixed.txt": b"windows\r\nunix\n",
        "utf-16.txt": "naïve\n".encode("utf-16"),
    }
    for name, data in written.items():
        (workspace.folder / "project" / name).write_bytes(data)
    save_work(workspace)
    workspace.remove()
    workspace.open((), lambda: None, updates=True)
    restored = {name: (workspace.folder / "project" / name).read_bytes() for name in written}
    assert restored == written


HOLD = """\
import sys
from rekindle.wiring import agent_workspaces

def wait(seconds):
    if not waits:
        print("waits", flush=True)
    waits.append(seconds)

waits, agent_workspaces.time.sleep = [], wait
with agent_workspaces._hold_slot():
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_only_two_are_created_at_a_time(how):
    """The third waits for a process that ends or is killed."""
    above = user_folder.find_workspaces_folder()
    above.mkdir(parents=True, exist_ok=True)
    children = []
    try:
        for _ in range(WORKSPACES_AT_ONCE + 1):
            child = subprocess.Popen(
                [sys.executable, "-c", HOLD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            children.append(child)
            expected = "holds\n" if len(children) <= WORKSPACES_AT_ONCE else "waits\n"
            assert child.stdout.readline() == expected
        for number in range(WORKSPACES_AT_ONCE):
            assert file_locks.is_locked(above / f"slot-{number}.lock")
        if how == "is killed":
            children[0].send_signal(signal.SIGKILL)
        children[0].communicate()
        assert children[-1].stdout.readline() == "holds\n"
    finally:
        for child in children:
            if not child.stdout.closed:
                child.communicate()


def test_a_locked_checkout_is_refused_after_the_timeout(project, monkeypatch):
    workspace = make_workspace(project)
    monkeypatch.setattr("rekindle.wiring.agent_workspaces.WORKSPACE_CALL_SECONDS", 0)
    with workspace.hold(), pytest.raises(WorkspaceError, match="another process") as refused:
        workspace.open((), lambda: None, updates=True)
    assert "repeat the command" in refused.value.hint


def test_the_agent_s_status_names_an_agent_in_a_subfolder(project, monkeypatch, capfd):
    """Commands in the clone find the project, and its agent."""
    check(project, own())
    monkeypatch.chdir(project)
    workspace = make_workspace(project)
    workspace.open((), lambda: None, updates=True)
    monkeypatch.chdir(workspace.folder / "project")
    assert main.run(["status", "--json"]) == 0
    assert [row["agent"] for row in json.loads(capfd.readouterr().out)["agents"]] == ["trades"]
