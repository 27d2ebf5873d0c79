"""Calls of git to a remote."""

import subprocess
from pathlib import Path

from rekindle.system.files import user_folder
from rekindle.system.git import remote_repository as remotes
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy


def test_git_starts_where_no_sandboxed_agent_can_write(tmp_path, monkeypatch):
    """In /tmp, a configuration that an agent puts into the folder could name programs."""
    folders = []
    start = remotes.start_git

    def note(arguments, *, folder, **options):
        folders.append(folder)
        return start(arguments, folder=folder, **options)

    monkeypatch.setattr(remotes, "start_git", note)
    bare, work = tmp_path / "bare.git", tmp_path / "work"
    for words in (["init", "-q", "--bare", str(bare)], ["init", "-q", str(work)]):
        subprocess.run(["git", *words], check=True)
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    commit = head.stdout.strip()
    remote = RemoteRepository(str(bare), "refs/heads/rekindle/trades")
    assert remote.push(WorkingCopy(work), commit, "")
    assert remote.look().work == commit
    assert [folder.parent for folder in folders] == [user_folder.find_user_folder() / "git"] * 2
    assert list(Path(user_folder.find_user_folder() / "git").iterdir()) == []


def test_only_refs_that_start_with_a_pattern_are_copied(tmp_path):
    """Git also lists a ref that contains the pattern, such as the first one here."""
    bare, work, here = tmp_path / "bare.git", tmp_path / "work", tmp_path / "here"
    for words in (["init", "-q", "--bare", str(bare)], ["init", "-q", str(work)]):
        subprocess.run(["git", *words], check=True)
    subprocess.run(["git", "init", "-q", str(here)], check=True)
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    refs = ("refs/heads/refs/run/1/a", "refs/run/1/a", "refs/run/1/b/c", "refs/run/12/a")
    subprocess.run(
        [*git, "push", "-q", str(bare), *(f"HEAD:{ref}" for ref in refs)],
        check=True,
    )
    copied = RemoteRepository(str(bare), "").copy_refs(WorkingCopy(here), "refs/run/1/*")
    listed = subprocess.run(
        ["git", "-C", str(here), "for-each-ref", "--format=%(refname)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert listed.stdout.split() == sorted(copied) == ["refs/run/1/a", "refs/run/1/b/c"]


def test_a_ref_that_has_moved_is_not_deleted(tmp_path):
    bare, work = tmp_path / "bare.git", tmp_path / "work"
    for words in (["init", "-q", "--bare", str(bare)], ["init", "-q", str(work)]):
        subprocess.run(["git", *words], check=True)
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for message in ("begin", "more"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    refs = ("refs/heads/a", "refs/heads/b")
    subprocess.run([*git, "push", "-q", str(bare), *(f"HEAD:{ref}" for ref in refs)], check=True)
    remote = RemoteRepository(str(bare), "")
    head = remote.list_refs("refs/heads/a")["refs/heads/a"]
    old = subprocess.run([*git, "rev-parse", "HEAD^"], check=True, capture_output=True, text=True)
    expected = {"refs/heads/a": head, "refs/heads/b": old.stdout.strip()}
    assert remote.delete(WorkingCopy(work), expected) == {"refs/heads/a"}
    assert remote.list_refs() == {"refs/heads/b": head}
