"""A repository that an agent has written runs no program, and leads no write elsewhere."""

import os
import subprocess
import sys

import pytest

from rekindle.errors import AuditError, WorkspaceError
from rekindle.system.git import own_configuration
from rekindle.system.git.repository import Repository
from rekindle.system.git.tree_snapshot import HeadPosition, WorkingCopy
from rekindle.system.git.work_status import GitStatus

REF = "refs/heads/rekindle/trades/relay"


def git(folder, *words, **environment):
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, env=os.environ | environment)


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "canary"


@pytest.fixture
def program(tmp_path, canary):
    path = tmp_path / "evil.sh"
    path.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    path.chmod(0o755)
    return path


def arm(work, config, program, name=b"x"):
    """Have every setting that starts a program name one, and change a file that has a filter."""
    keys = {
        b'filter "%s"' % name: (b"clean", b"smudge"),
        b"core": (b"fsmonitor", b"sshCommand", b"pager", b"editor", b"askPass"),
        b"diff": (b"external",),
        b'diff "%s"' % name: (b"textconv", b"command"),
        b"gpg": (b"program",),
        b"credential": (b"helper",),
        b'hook "%s"' % name: (b"command",),
    }
    lines = b"".join(
        b"[%s]\n%s" % (section, b"".join(b"\t%s = %s\n" % (key, bytes(program)) for key in named))
        for section, named in keys.items()
    )
    more = config.with_name("more")
    more.write_bytes(lines + b"[log]\n\tshowSignature = true\n")
    with config.open("ab") as file:
        file.write(b"[include]\n\tpath = more\n" + b'[hook "%s"]\n\tevent = post-commit\n' % name)
    (work / ".gitattributes").write_bytes(b"*.txt filter=%s diff=%s\n" % (name, name))
    (work / "a.txt").write_text("two")


def make_repository(folder):
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("one")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "begin")
    return folder


def plant_bare_repository(folder):
    """Make a folder of a repository a repository by itself, without `.git`."""
    git(folder, "init", "-q", "--bare", ".")
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {folder}\n"
    )
    (folder / "a.txt").write_text("one")
    git(folder, "add", "a.txt", GIT_DIR=str(folder), GIT_WORK_TREE=str(folder))


@pytest.mark.parametrize("name", [b"x", b"\xff"], ids=["plain", "not UTF-8"])
def test_a_planted_setting_starts_nothing(tmp_path, canary, program, name):
    work = make_repository(tmp_path / "project")
    arm(work, work / ".git/config", program, name)
    subprocess.run(["git", "status", "--short"], cwd=work, check=True, capture_output=True)
    assert canary.exists()  # without Rekindle's settings it is started
    canary.unlink()
    status = GitStatus(str(work))
    assert set(status.changed()) == {"a.txt", ".gitattributes"}
    assert status.fingerprint()
    assert status.committed("") == ("a.txt",)
    assert not canary.exists()


@pytest.mark.parametrize("name", [b"x", b"\xff"], ids=["plain", "not UTF-8"])
def test_a_planted_setting_starts_nothing_for_a_snapshot(tmp_path, canary, program, name):
    work = make_repository(tmp_path / "project")
    arm(work, work / ".git/config", program, name)
    copy = WorkingCopy(work)
    with copy.capture() as taken:
        taken.put(copy.find_tree("HEAD"), "HEAD")
    assert (work / "a.txt").read_text() == "one"
    assert not canary.exists()


@pytest.mark.parametrize("name", [b"x", b"\xff"], ids=["plain", "not UTF-8"])
def test_a_planted_bare_repository_is_not_one(tmp_path, canary, program, name):
    work = make_repository(tmp_path / "outer") / "project"
    work.mkdir()
    plant_bare_repository(work)
    arm(work, work / "config", program, name)
    status = GitStatus(str(work))
    assert status.root() == str(tmp_path / "outer")
    assert "project/a.txt" in status.changed()
    assert not canary.exists()


def test_a_bare_repository_alone_is_not_one(tmp_path):
    work = tmp_path / "project"
    work.mkdir()
    plant_bare_repository(work)
    assert own_configuration.find_top(work) in {None, *tmp_path.parents}
    assert GitStatus(str(work)).root() != str(work)


def test_a_setting_that_changes_during_a_call_starts_nothing(tmp_path, canary, program):
    """Git never reads the repository's own settings, so there is no moment to hit."""
    work = make_repository(tmp_path / "project")
    config = work / ".git/config"
    clean = config.read_bytes()
    arm(work, config, program)
    code = (
        "import os, sys\n"
        "config, *texts = sys.argv[1], bytes.fromhex(sys.argv[2]), bytes.fromhex(sys.argv[3])\n"
        "while True:\n"
        "    for text in texts:\n"
        "        open(config + '.new', 'wb').write(text)\n"
        "        os.rename(config + '.new', config)\n"
    )
    words = (str(config), clean.hex(), config.read_bytes().hex())
    with subprocess.Popen([sys.executable, "-c", code, *words]) as flipping:
        try:
            for number in range(30):
                (work / "a.txt").write_text("two" if number % 2 else "owt")
                GitStatus(str(work)).changed()
        finally:
            flipping.kill()
    assert not canary.exists()


def test_the_user_s_settings_that_start_nothing_still_count(tmp_path, monkeypatch):
    work = make_repository(tmp_path / "project")
    (tmp_path / "ignored").write_text("*.log\n")
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path / 'ignored'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (work / "a.log").write_text("log")
    (work / ".git/info/exclude").write_text("*.tmp\n")
    (work / "a.tmp").write_text("tmp")
    git(work, "config", "core.fileMode", "false")
    (work / "a.txt").chmod(0o755)
    assert GitStatus(str(work)).changed() == ()


def write_relay(folder):
    repository = Repository(folder, timeout=30)
    pack = repository.new_pack()
    tip = pack.commit(pack.tree({"relay": pack.blob(b"text")}), [], "relay", 0)
    repository.add(pack, REF)
    return repository.move(REF, tip, "")


def link_objects(git_folder, elsewhere):
    (git_folder / "objects").rename(git_folder / "o")
    (git_folder / "objects").symlink_to(elsewhere)


def link_one_folder_of_objects(git_folder, elsewhere):
    for number in range(256):
        place = git_folder / f"objects/{number:02x}"
        if not place.exists():
            place.symlink_to(elsewhere)


def link_refs(git_folder, elsewhere):
    (git_folder / "refs").rename(git_folder / "r")
    (git_folder / "refs").symlink_to(elsewhere)


def link_branches(git_folder, elsewhere):
    (git_folder / "refs/heads/rekindle").symlink_to(elsewhere)


def link_all(git_folder, elsewhere):
    git_folder.rename(elsewhere / "git")
    git_folder.symlink_to(elsewhere / "git")


def name_another_one(git_folder, elsewhere):
    git_folder.rename(git_folder.with_name("away"))
    git(elsewhere, "init", "-q", "other")
    git_folder.write_text(f"gitdir: {elsewhere}/other/.git\n")


def share_another_one(git_folder, elsewhere):
    git(elsewhere, "init", "-q", "other")
    (git_folder / "commondir").write_text(f"{elsewhere}/other/.git\n")


def link_packed_refs(git_folder, elsewhere):
    (git_folder / "packed-refs").symlink_to(elsewhere / "packed-refs")


def link_the_log_of_head(git_folder, elsewhere):
    (elsewhere / "notes").write_text("mine\n")
    (git_folder / "logs/HEAD").unlink()
    (git_folder / "logs/HEAD").symlink_to(elsewhere / "notes")


def link_logs(git_folder, elsewhere):
    (git_folder / "logs").rename(elsewhere / "logs")
    (git_folder / "logs").symlink_to(elsewhere / "logs")


PLANTS = (
    link_objects,
    link_one_folder_of_objects,
    link_refs,
    link_branches,
    link_all,
    name_another_one,
    share_another_one,
    link_packed_refs,
    link_the_log_of_head,
    link_logs,
)


def read_all(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda one: one.__name__)
def test_no_relay_is_written_through_a_link(tmp_path, plant):
    work = make_repository(tmp_path / "project")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    plant(work / ".git", elsewhere)
    before = read_all(elsewhere)
    with pytest.raises(AuditError) as refused:
        write_relay(work)
    assert refused.value.cause == "linked"
    assert read_all(elsewhere) == before


def replace_work(copy):
    """Capture the work tree and replace it, as a host of a fleet does."""
    standing = copy.read_head()
    with copy.capture() as taken:
        made = copy.commit(taken.tree, [standing.head], "work")
        taken.put(taken.tree, standing.head)
    copy.move("refs/heads/rekindle/trades/work", made)
    copy.set_head(HeadPosition(made, standing.branch))
    copy.set_head(HeadPosition("", standing.branch))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda one: one.__name__)
def test_no_work_is_captured_or_replaced_through_a_link(tmp_path, plant):
    work = make_repository(tmp_path / "project")
    opened = WorkingCopy(work)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    plant(work / ".git", elsewhere)
    before = read_all(elsewhere)
    with pytest.raises(WorkspaceError) as refused:
        replace_work(WorkingCopy(work))
    assert refused.value.cause == "linked"
    with pytest.raises(WorkspaceError) as refused:
        replace_work(opened)
    assert refused.value.cause == "linked"
    assert read_all(elsewhere) == before


def test_work_is_captured_and_replaced_in_a_plain_repository(tmp_path):
    work = make_repository(tmp_path / "project")
    replace_work(WorkingCopy(work))
    git(work, "cat-file", "-e", "refs/heads/rekindle/trades/work")


def test_work_is_captured_in_a_linked_work_tree(tmp_path):
    work = make_repository(tmp_path / "project")
    git(work, "worktree", "add", "-q", "../beside")
    replace_work(WorkingCopy(tmp_path / "beside"))
    git(work, "cat-file", "-e", "refs/heads/rekindle/trades/work")


def test_a_planted_bare_repository_gets_no_relay(tmp_path):
    work = make_repository(tmp_path / "outer") / "project"
    work.mkdir()
    plant_bare_repository(work)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link_objects(work, elsewhere)
    link_refs(work, elsewhere)
    assert write_relay(work)
    assert list(elsewhere.iterdir()) == []
    git(tmp_path / "outer", "cat-file", "-e", REF)
