"""The work in a folder, as the real git knows it."""

import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from rekindle.system.git.work_status import GitStatus
from throwaway import Repository, isolate


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def git(folder, *words):
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(folder, name, text="x"):
    (folder / name).write_text(text)
    git(folder, "add", name)
    git(folder, "commit", "-qm", f"add {name}")
    return git(folder, "rev-parse", "HEAD")


def test_changed_and_new_files_are_told_and_ours_are_not(project):
    commit(project, "a.py")
    (project / "a.py").write_text("changed")
    (project / "new file\n.py").write_text("new")
    (project / ".rekindle").mkdir()
    (project / ".rekindle" / "state.json").write_text("{}")
    assert set(GitStatus(str(project)).changed()) == {"a.py", "new file .py"}


def test_it_is_the_same_as_long_as_nothing_changes(project, tmp_path):
    commit(project, "a.py")
    tree = GitStatus(str(project))

    def after(do):
        before = tree.fingerprint()
        do()
        return tree.fingerprint() == before != ""

    (project / ".rekindle").mkdir()
    assert after(lambda: (project / ".rekindle/state.json").write_text("{}"))
    assert after((project / "a.py").read_text)
    assert not after(lambda: (project / "a.py").write_text("changed"))
    assert not after(lambda: (project / "a.py").write_text("changed again"))
    assert not after(lambda: (project / "new\udcff.py").write_text("new"))
    assert not after(lambda: commit(project, "a.py", "changed again"))
    assert GitStatus(str(tmp_path)).fingerprint() == ""


def test_what_was_committed_since(project):
    first = commit(project, "a.py")
    commit(project, "b.py")
    last = commit(project, "c.py")
    tree = GitStatus(str(project))
    assert tree.head() == last
    assert tree.committed(first) == ("c.py", "b.py")
    assert tree.commits(first) == ("add c.py", "add b.py")
    assert (tree.committed(last), tree.commits(last)) == ((), ())


def test_a_folder_below_tells_of_itself(project):
    (project / "below").mkdir()
    commit(project, "below/a.py")
    commit(project, "b.py")
    (project / "b.py").write_text("changed")
    (project / "below" / "a.py").write_text("changed")
    assert GitStatus(str(project / "below")).changed() == ("below/a.py",)


def test_commits_in_a_neighbour_s_folder_are_not_told(project):
    """Two agents with a `dir:` of their own in one repository: each has its own commits."""
    for name in ("own", "other"):
        (project / name).mkdir()
    first = commit(project, "a.py")
    commit(project, "own/b.py")
    commit(project, "other/c.py")
    (project / ".rekindle").mkdir()
    commit(project, ".rekindle/state.json")
    assert GitStatus(str(project / "own")).commits(first) == ("add own/b.py",)
    assert GitStatus(str(project)).commits(first) == ("add other/c.py", "add own/b.py")


def test_where_there_is_no_git_or_no_commit_nothing_is_known(tmp_path, project):
    for tree in (GitStatus(str(tmp_path)), GitStatus(str(tmp_path / "gone"))):
        assert (tree.head(), tree.changed(), tree.committed("HEAD"), tree.commits("x")) == (
            "",
            (),
            (),
            (),
        )
    tree = GitStatus(str(project))
    assert (tree.head(), tree.committed("")) == ("", ())
    (project / "a.py").write_text("x")
    assert tree.changed() == ("a.py",)


def test_a_repository_that_is_created_or_removed_later_counts(tmp_path):
    tree = GitStatus(str(tmp_path))
    assert not tree.is_known
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, "a.py")
    assert (tree.is_known, tree.head(), tree.root()) == (True, first, str(tmp_path.resolve()))
    shutil.rmtree(tmp_path / ".git")
    assert (tree.is_known, tree.head()) == (False, "")
    git(tmp_path, "init", "-q")
    assert tree.changed() == ("a.py",)


def test_a_revision_is_never_an_option(project):
    commit(project, "a.py")
    assert GitStatus(str(project)).committed("--output=/tmp/x") == ()


def test_no_program_of_the_repository_is_run(project):
    ran = project.parent / "ran"
    touch = f"sh -c 'touch {ran}; cat'"
    (project / ".gitattributes").write_text("*.txt filter=f\n")
    git(project, "config", "filter.f.clean", touch)
    commit(project, "a.txt")
    assert ran.exists(), "the fault never happened"
    ran.unlink()
    for key in ("filter.f.process", "core.fsmonitor", "diff.external", "gpg.program"):
        git(project, "config", key, touch)
    git(project, "config", "filter.f.required", "true")
    git(project, "config", "log.showSignature", "true")
    (project / "a.txt").write_text("y")
    tree = GitStatus(str(project))
    assert "a.txt" in tree.changed()
    assert tree.committed("") == ("a.txt",)
    assert not ran.exists()


def test_what_was_committed_after_a_moment(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "home")
    repository = Repository(tmp_path / "project").init()
    tree = GitStatus(str(repository.path))
    then = datetime(2026, 1, 2, tzinfo=UTC)
    assert tree.after(then) == ((), ())
    for day, name in ((1, "old.txt"), (3, "new.txt")):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-0{day}T12:00:00Z")
        repository.commit(name)
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    assert tree.after(then) == (("Write new.txt",), ("new.txt",))
    assert GitStatus(str(tmp_path)).after(then) == ((), ())
