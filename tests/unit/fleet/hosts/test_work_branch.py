"""A workspace in git: it comes back as it was, and only its owner's pushes count."""

import os
import shutil
import subprocess
import threading

import pytest

from rekindle.documents.commits import work_commit as document
from rekindle.documents.commits.work_commit import (
    PushedWork,
    RemoteLocation,
    WorkSnapshot,
)
from rekindle.errors import StalePushError, WorkspaceError
from rekindle.fleet.hosts.work_branch import (
    WorkBranch,
    find_remote,
)
from rekindle.system.git import git_process, shared_mirror
from rekindle.system.git import remote_repository as transport
from rekindle.system.git.shared_mirror import SharedMirror
from rekindle.system.git.tree_snapshot import (
    CapturedTree,
    WorkingCopy,
)
from throwaway import Repository

WORK = "refs/heads/rekindle/trades/work"


def contents(folder):
    """Every file with its bytes and mode; links by where they point."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_link = path.is_symlink()
        if name.parts[0] in {".git", ".rekindle"} or (path.is_dir() and not is_link):
            continue
        found[str(name)] = path.readlink() if is_link else (path.read_bytes(), path.stat().st_mode)
    return found


def status(repository):
    looking = {"GIT_OPTIONAL_LOCKS": "0"}
    asked = ("status", "--porcelain", "--untracked-files=all", "-z", "--", ":!.rekindle")
    return repository.git(*asked, **looking)


def test_a_workspace_comes_back_as_it_was_on_another_host(fleet):
    """Dirty, untracked, deleted, executable, linked, binary, with odd names; ignored stays."""
    first = fleet.at("here", 1)
    claimed = first.bring(None)
    assert claimed.branch == "main"
    here = fleet.repository("here")
    here.commit("made.txt", "committed here, never pushed\n")
    (here.path / "kept.txt").write_text("dirty\n")
    (here.path / "gone.txt").unlink()
    (here.path / "run.sh").chmod(0o755)
    (here.path / "a link").symlink_to("nowhere/at all")
    (here.path / "blob.bin").write_bytes(bytes(range(256)) * 40)
    (here.path / "sub folder").mkdir()
    (here.path / "sub folder/naïve — 名前\t.txt").write_text("new\n")
    (here.path / "build").mkdir()
    (here.path / "build/cache").write_text("ignored")
    (here.path / ".rekindle").mkdir()
    (here.path / ".rekindle/ours").write_text("never")
    pushed = first.push()
    assert pushed == PushedWork(fleet.work(), here.git("rev-parse", "HEAD"), "main")

    second = fleet.at("there", 2)
    second.bring(pushed)
    there = fleet.repository("there")
    expected = contents(here.path)
    del expected["build/cache"]
    assert contents(there.path) == expected
    assert status(there) == status(here)
    assert there.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert there.git("rev-parse", "HEAD") == pushed.head
    assert not (there.path / ".rekindle").exists()
    assert second.left == []
    assert there.git("config", "remote.origin.url") == fleet.url
    there.git("fsck", "--strict")


def test_a_snapshot_says_whose_it_is(fleet):
    """The tree is the work tree; the parents are HEAD and the snapshot before."""
    workspace = fleet.at("here", 3)
    claimed = workspace.bring(None)
    here = fleet.repository("here")
    (here.path / "new.txt").write_text("new\n")
    pushed = workspace.push()
    assert fleet.remote.git("log", "-1", "--format=%an %ae %cn%n%B", WORK).split("\n") == [
        "Rekindle rekindle@localhost Rekindle",
        "The workspace of trades",
        "",
        "Rekindle-Agent: trades",
        "Rekindle-Generation: 3",
        "Rekindle-Host: here",
        "Rekindle-Branch: main",
        f"Rekindle-Head: {pushed.head}",
    ]
    parents = fleet.remote.git("log", "-1", "--format=%P", WORK).split()
    assert parents == [pushed.head, claimed.revision]
    assert "new.txt" in fleet.remote.git("ls-tree", "--name-only", WORK).splitlines()
    message = document.render(WorkSnapshot("trades", 3, "here", "", ""))
    assert document.parse(message) == WorkSnapshot("trades", 3, "here", "", "")
    assert document.parse("A commit of a person\n") is None


def test_what_has_not_changed_is_not_pushed_again(fleet):
    """None, and the branch stays; a new branch or commit alone is a change."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    before = fleet.work()
    assert workspace.push() is None
    assert fleet.work() == before
    here = fleet.repository("here")
    here.git("checkout", "-q", "-b", "feature")
    assert workspace.push().branch == "feature"
    here.git("checkout", "-q", "--detach")
    assert workspace.push().branch == ""
    here.git("commit", "-q", "--allow-empty", "-m", "Nothing")
    assert workspace.push().head == here.git("rev-parse", "HEAD")
    assert workspace.push() is None


@pytest.mark.parametrize("how", ["feature", ""])
def test_the_branch_that_was_checked_out_is_again(fleet, how):
    """It may be a branch that was never pushed, or none at all."""
    first = fleet.at("here", 1)
    first.bring(None)
    here = fleet.repository("here")
    here.git("checkout", "-q", *(("-b", how) if how else ("--detach",)))
    here.commit("made.txt")
    pushed = first.push()
    fleet.at("there", 2).bring(pushed)
    there = fleet.repository("there")
    assert there.git("rev-parse", "HEAD") == pushed.head
    assert there.git("branch", "--show-current") == how
    assert status(there) == ""


@pytest.mark.parametrize("pushed_before", [True, False])
def test_a_zombies_push_is_refused(fleet, pushed_before):
    """This holds from the claim on, whether or not the new owner has pushed since."""
    zombie = fleet.at("here", 1)
    pushed = zombie.bring(None)
    owner = fleet.at("there", 2)
    owner.bring(pushed)
    if pushed_before:
        (fleet.repository("there").path / "new.txt").write_text("the owner's\n")
        assert owner.push()
    (fleet.repository("here").path / "late.txt").write_text("the zombie's\n")
    before = fleet.work()
    for _ in range(2):
        with pytest.raises(StalePushError, match="agent trades was taken over") as refused:
            zombie.push()
    assert refused.value.found == before == fleet.work()
    with pytest.raises(StalePushError):
        zombie.bring(pushed)
    assert (fleet.repository("here").path / "late.txt").exists()


def test_a_zombie_on_the_host_that_its_agent_came_back_to_is_refused(fleet):
    """They share a folder, and what the new owner has pushed from there is not the zombie's."""
    zombie = fleet.at("here", 1)
    pushed = fleet.at("there", 2).bring(zombie.bring(None))
    owner = fleet.at("here", 3)
    owner.bring(pushed)
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    with pytest.raises(StalePushError):
        zombie.push()
    assert owner.push()


def test_who_has_not_claimed_cannot_push(fleet):
    """A generation that was never brought here has no lease to push with."""
    fleet.at("here", 1).bring(None)
    with pytest.raises(WorkspaceError, match="has not claimed the branch") as refused:
        fleet.at("here", 2).push()
    assert refused.value.cause == "unclaimed"


def test_another_process_of_the_same_generation_continues(fleet):
    """The knowledge of the branch is in the repository, not in an object."""
    fleet.at("here", 1).bring(None)
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    assert fleet.at("here", 1).push().revision == fleet.work()
    assert fleet.at("here", 1).push() is None


def test_what_was_pushed_but_not_recorded_is_kept_and_does_not_count(fleet):
    """The content is the recorded one; the other commit is an ancestor of the claim."""
    old = fleet.at("here", 1)
    recorded = old.bring(None)
    (fleet.repository("here").path / "unrecorded.txt").write_text("pushed, then died\n")
    unrecorded = old.push()
    claimed = fleet.at("there", 2).bring(recorded)
    assert not (fleet.repository("there").path / "unrecorded.txt").exists()
    parents = fleet.remote.git("log", "-1", "--format=%P", claimed.revision).split()
    assert parents == [recorded.head, recorded.revision, unrecorded.revision]


def test_what_an_earlier_stay_left_here_is_kept_under_a_ref(fleet):
    """Dirty files and unpushed commits are not part of the fetched revision."""
    first = fleet.at("here", 1)
    pushed = first.bring(None)
    here = fleet.repository("here")
    lost = here.commit("lost.txt", "committed after the last push\n")
    (here.path / "kept.txt").write_text("dirty after the last push\n")
    (here.path / "build").mkdir()
    (here.path / "build/cache").write_text("ignored")
    moved = fleet.at("there", 2).bring(pushed)
    back = fleet.at("here", 3)
    back.bring(moved)
    (ref,) = back.left
    assert ref.startswith("refs/rekindle/trades/left/")
    assert here.git("show", f"{ref}:kept.txt") == "dirty after the last push"
    assert here.git("rev-parse", f"{ref}^1") == lost
    assert (here.path / "kept.txt").read_text() == "kept\n"
    assert not (here.path / "lost.txt").exists()
    assert (here.path / "build/cache").read_text() == "ignored"
    assert here.git("rev-parse", "HEAD") == pushed.head
    assert status(here) == ""


def test_what_was_pushed_from_here_needs_no_keeping(fleet):
    """An old stay whose last state the branch has is simply brought up to date."""
    first = fleet.at("here", 1)
    first.bring(None)
    (fleet.repository("here").path / "kept.txt").write_text("dirty\n")
    other = fleet.at("there", 2)
    other.bring(first.push())
    (fleet.repository("there").path / "kept.txt").write_text("further\n")
    back = fleet.at("here", 3)
    back.bring(other.push())
    assert back.left == []
    assert (fleet.repository("here").path / "kept.txt").read_text() == "further\n"


def test_an_ignored_file_that_the_revision_has_as_its_own_is_kept_first(fleet):
    """Forced into the index there, ignored here: the revision's counts, and ours is not lost."""
    first = fleet.at("here", 1)
    pushed = first.bring(None)
    (fleet.repository("here").path / "out.log").write_text("mine\n")
    (fleet.repository("here").path / "build").write_text("a file where a folder is to be\n")
    other = fleet.at("there", 2)
    other.bring(pushed)
    there = fleet.repository("there")
    (there.path / "out.log").write_text("theirs\n")
    (there.path / "build").mkdir()
    (there.path / "build/made").write_text("forced\n")
    there.git("add", "-f", "out.log", "build/made")
    there.git("commit", "-q", "-m", "Ignored, and tracked")
    back = fleet.at("here", 3)
    back.bring(other.push())
    here = fleet.repository("here")
    assert (here.path / "out.log").read_text() == "theirs\n"
    assert (here.path / "build/made").read_text() == "forced\n"
    (ref,) = back.left
    assert here.git("show", f"{ref}:out.log") == "mine"
    assert here.git("show", f"{ref}:build") == "a file where a folder is to be"
    assert status(here) == ""
    assert fleet.at("here", 3).push() is None


def test_nothing_is_touched_where_all_is_there_already(fleet):
    """An agent that stays keeps its builds: no file, no index, no ref of the user's changes."""
    first = fleet.at("here", 1)
    first.bring(None)
    here = fleet.repository("here")
    (here.path / "kept.txt").write_text("staged\n")
    here.git("add", "kept.txt")
    (here.path / "kept.txt").write_text("dirty\n")
    (here.path / "new.txt").write_text("untracked\n")
    pushed = first.push()
    before = here.users_own()
    times = {path: path.stat().st_mtime_ns for path in here.path.glob("[!.]*")}
    again = fleet.at("here", 2)
    again.bring(pushed)
    assert again.left == []
    assert times == {path: path.stat().st_mtime_ns for path in here.path.glob("[!.]*")}
    after = here.users_own()
    assert [*map(drop_ours, (before, after))] == [drop_ours(before)] * 2
    assert after["index"] == before["index"]


def drop_ours(own):
    return {**own, "refs": [ref for ref in own["refs"] if "refs/rekindle/" not in ref]}


def test_only_what_differs_is_written(fleet):
    """Files that the revision has as they are here keep their times."""
    first = fleet.at("here", 1)
    pushed = first.bring(None)
    kept = fleet.repository("here").path / "kept.txt"
    os.utime(kept, (1_000_000_000, 1_000_000_000))
    other = fleet.at("there", 2)
    other.bring(pushed)
    (fleet.repository("there").path / "gone.txt").unlink()
    fleet.at("here", 3).bring(other.push())
    assert kept.stat().st_mtime == 1_000_000_000
    assert not (fleet.repository("here").path / "gone.txt").exists()


def test_a_push_leaves_everything_of_the_users_alone(fleet):
    """Index, stash, refs and configuration are as before; no hook and no filter runs."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    here = fleet.repository("here")
    (here.path / "kept.txt").write_text("stashed\n")
    here.git("stash", "push", "-q")
    (here.path / "kept.txt").write_text("staged\n")
    here.git("add", "kept.txt")
    (here.path / "kept.txt").write_text("dirty\n")
    (here.path / ".gitattributes").write_text("*.txt filter=sing\n")
    sing = here.path.parent / "sung"
    script = here.path.parent / "sing"
    script.write_text(f"#!/bin/sh\necho $0 >> {sing}\nexit 1\n")
    script.chmod(0o755)
    hooks = here.path / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    names = ("pre-push", "reference-transaction", "post-index-change", "post-checkout")
    for name in names:
        (hooks / name).symlink_to(script)
    before = here.users_own()
    # Settings that an agent could have written into its repository's configuration.
    for name in ("core.sshCommand", "filter.sing.clean", "filter.sing.smudge", "core.fsmonitor"):
        here.git("config", name, str(script))
    here.git("config", f"remote.{fleet.url}.receivepack", str(script))
    here.git("config", "url.file:///nowhere/.insteadOf", "file:///")
    config = (here.path / ".git/config").read_bytes()
    sing.unlink(missing_ok=True)
    pushed = workspace.push()
    fleet.at("here", 2).bring(pushed)
    assert not sing.exists(), sing.read_text()
    after = here.users_own()
    assert after.pop("config") == config
    before.pop("config")
    assert drop_ours(after) == drop_ours(before)
    assert fleet.remote.git("show", f"{pushed.revision}:kept.txt") == "dirty"


def test_an_empty_remote_is_claimed_as_well(fleet, tmp_path):
    """No HEAD, no commit: the first one comes from the agent."""
    fleet.remote = Repository(tmp_path / "empty.git").init("--bare")
    fleet.url = f"file://{fleet.remote.path}"
    first = fleet.at("here", 1)
    claimed = first.bring(None)
    assert (claimed.head, claimed.branch) == ("", "main")
    assert first.push() is None
    here = fleet.repository("here")
    (here.path / "new.txt").write_text("new\n")
    pushed = first.push()
    assert pushed.head == ""
    second = fleet.at("there", 2)
    second.bring(pushed)
    there = fleet.repository("there")
    assert contents(there.path) == contents(here.path)
    assert status(there) == "?? new.txt\0"
    there.git("add", "-A")
    there.git("commit", "-q", "-m", "The first")
    third = fleet.at("here", 3)
    third.bring(second.push())
    assert status(here) == ""
    assert here.git("log", "--format=%s") == "The first"


def test_a_remote_whose_default_branch_was_never_pushed(fleet, tmp_path):
    """`git init --bare` leaves it so: a single branch is used; of two, neither is."""
    fleet.remote.git("symbolic-ref", "HEAD", "refs/heads/master")
    pushed = fleet.at("here", 1).bring(None)
    assert pushed.branch == "main"
    assert (fleet.repository("here").path / "kept.txt").exists()
    fleet.remote.git("branch", "other", "main")
    with pytest.raises(WorkspaceError, match="no default branch") as refused:
        fleet.at("there", 1).bring(None)
    assert refused.value.cause == "headless"
    assert fleet.at("there", 2).bring(pushed).branch == "main"


def test_a_branch_of_an_earlier_life_becomes_a_parent(fleet):
    """Whatever it counted to: the agent starts again, from the default branch."""
    earlier = fleet.at("here", 7)
    earlier.bring(None)
    (fleet.repository("here").path / "new.txt").write_text("of the earlier life\n")
    last = earlier.push()
    claimed = fleet.at("there", 1).bring(None)
    assert not (fleet.repository("there").path / "new.txt").exists()
    assert fleet.is_in(last.revision, claimed.revision)


STEPS = [
    (shared_mirror.durable_files, "rename_durably", "before"),
    (shared_mirror.durable_files, "rename_durably", "after"),
    (SharedMirror, "_write_clone", "after"),
    (transport.RemoteRepository, "fetch", "before"),
    (CapturedTree, "cover", "before"),
    (CapturedTree, "put", "before"),
    (WorkingCopy, "install_index", "before"),
    (WorkingCopy, "install_index", "after"),
    (WorkingCopy, "set_head", "before"),
    (WorkingCopy, "refresh", "before"),
    (transport.RemoteRepository, "push", "before"),
    (transport.RemoteRepository, "push", "after"),
    (WorkingCopy, "move", "after"),
]
NAMES = [f"{when}-{step}" for _, step, when in STEPS]


class Killed(BaseException):
    """The process ended at this point."""


def dying(owner, step, when):
    """A step that is not begun, or is done and nothing after it."""
    real = getattr(owner, step)

    def dies(*arguments, **more):
        if when == "after":
            real(*arguments, **more)
        raise Killed

    return dies


@pytest.fixture
def busy(fleet):
    """A host with an agent on another branch, dirty in every way."""
    fleet.at("here", 1).bring(None)
    here = fleet.repository("here")
    here.git("checkout", "-q", "-b", "feature")
    here.commit("made.txt")
    (here.path / "kept.txt").write_text("dirty\n")
    (here.path / "gone.txt").unlink()
    (here.path / "new.txt").write_text("new\n")
    return here


def assert_it_is_there(fleet, claimed):
    here, there = fleet.repository("here"), fleet.repository("there")
    assert contents(there.path) == contents(here.path)
    assert status(there) == status(here)
    assert there.git("branch", "--show-current") == "feature"
    assert fleet.work() == claimed.revision
    assert {path.name for path in there.path.parent.iterdir()} == {"trades", "mirrors"}
    assert not [*(there.path / ".git").glob("rekindle-*")]


@pytest.mark.parametrize(("owner", "step", "when"), STEPS, ids=NAMES)
def test_killed_while_it_clones_it_gets_there_the_next_time(  # noqa: PLR0917
    fleet, busy, monkeypatch, owner, step, when
):
    """On a host that has no copy yet."""
    recorded = fleet.at("here", 1).push()
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, dying(owner, step, when))
        with pytest.raises(Killed):
            fleet.at("there", 2).bring(recorded)
    assert_it_is_there(fleet, fleet.at("there", 2).bring(recorded))


@pytest.mark.parametrize(("owner", "step", "when"), STEPS[3:], ids=NAMES[3:])
def test_killed_where_a_copy_is_it_gets_there_the_next_time(  # noqa: PLR0917
    fleet, busy, monkeypatch, owner, step, when
):
    """The host has an old copy with an unpushed commit."""
    recorded = fleet.at("there", 2).bring(fleet.at("here", 1).push())
    there = fleet.repository("there")
    there.commit("left.txt", "left there\n")
    fleet.at("here", 3).bring(recorded)
    (busy.path / "kept.txt").write_text("further\n")
    recorded = fleet.at("here", 3).push()
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, dying(owner, step, when))
        with pytest.raises(Killed):
            fleet.at("there", 4).bring(recorded)
    assert_it_is_there(fleet, fleet.at("there", 4).bring(recorded))
    refs = there.git("for-each-ref", "--format=%(refname)", "refs/rekindle/trades/left").split()
    assert "left there" in [there.git("show", f"{ref}:left.txt", check=False) for ref in refs]


@pytest.mark.parametrize("step", ["install_index", "set_head"])
def test_after_a_kill_around_the_files_the_index_is_still_heads(fleet, monkeypatch, step):
    """With HEAD unmoved, nothing else would show the next attempt that it is not done."""
    first = fleet.at("here", 1)
    pushed = first.bring(None)
    here = fleet.repository("here")
    (here.path / "staged.txt").write_text("staged, then its host was taken for dead\n")
    here.git("add", "staged.txt")
    other = fleet.at("there", 2)
    other.bring(pushed)
    (fleet.repository("there").path / "kept.txt").write_text("dirty\n")
    recorded = other.push()
    with monkeypatch.context() as patch:
        patch.setattr(WorkingCopy, step, dying(WorkingCopy, step, "before"))
        with pytest.raises(Killed):
            fleet.at("here", 3).bring(recorded)
    fleet.at("here", 3).bring(recorded)
    assert status(here) == " M kept.txt\0"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_push_whose_answer_was_lost_is_known_for_ours(fleet, monkeypatch, when):
    """Whether or not the remote has it, the next push succeeds."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    real = transport.RemoteRepository.push

    def lost(*arguments):
        if when == "after":
            real(*arguments)  # the second one is refused, and that is not heard either
        raise WorkspaceError("remote", "the connection broke", hint="again")

    with monkeypatch.context() as patch:
        patch.setattr(transport.RemoteRepository, "push", lost)
        for _ in range(2):
            with pytest.raises(WorkspaceError):
                workspace.push()
    tried = fleet.work()
    pushed = fleet.at("here", 1).push()
    assert fleet.work() == pushed.revision
    assert fleet.is_in(tried, pushed.revision)
    assert fleet.at("here", 1).push() is None


def test_an_old_owner_that_still_pushes_does_not_keep_the_branch(fleet, monkeypatch):
    """Its push in the middle of a claim becomes a parent, and the claim is made again."""
    old = fleet.at("here", 1)
    recorded = old.bring(None)
    real = transport.RemoteRepository.push
    late = []

    def meanwhile(self, copy, commit, expected):
        if not late:
            late.append(None)
            (fleet.repository("here").path / "late.txt").write_text("just in time\n")
            late[0] = old.push()
        return real(self, copy, commit, expected)

    monkeypatch.setattr(transport.RemoteRepository, "push", meanwhile)
    claimed = fleet.at("there", 2).bring(recorded)
    assert fleet.is_in(late[0].revision, claimed.revision)
    assert not (fleet.repository("there").path / "late.txt").exists()


def test_of_two_generations_that_race_the_newer_one_wins(fleet):
    """In either order the older one is refused or overtaken, and can push nothing after that."""
    recorded = fleet.at("here", 1).bring(None)
    racing = {host: fleet.at(host, generation) for host, generation in (("a", 2), ("b", 3))}
    for host in racing:  # so that the race is for the branch alone
        subprocess.run(["git", "clone", "-q", fleet.url, fleet.root / host / "trades"], check=True)
    outcome = {}
    ready = threading.Barrier(2)

    def race(host):
        ready.wait()
        try:
            outcome[host] = racing[host].bring(recorded)
        except StalePushError as refused:
            outcome[host] = refused

    threads = [threading.Thread(target=race, args=(host,)) for host in racing]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert isinstance(outcome["b"], PushedWork)
    assert fleet.work() == outcome["b"].revision
    for host in racing:
        (fleet.repository(host).path / "new.txt").write_text(f"{host}\n")
    with pytest.raises((StalePushError, WorkspaceError)):
        racing["a"].push()
    assert racing["b"].push().revision == fleet.work()


@pytest.mark.parametrize(
    "url",
    [
        "https://person:s3cr3t-w0rd@127.0.0.1:9/a.git?token=s3cr3t-w0rd",
        "https://s3cr3t-w0rd@127.0.0.1:9/a.git",
        "ssh://person:s3cr3t-w0rd@127.0.0.1:9/a.git",
        "file:///nowhere/a.git",
        "ext::sh -c s3cr3t-w0rd",
        "--upload-pack=s3cr3t-w0rd",
    ],
)
def test_a_remote_that_is_out_of_reach_is_a_typed_error(fleet, url):
    """Bringing and pushing both say so, with what to try, and give no login away."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    here = fleet.repository("here")
    (here.path / "new.txt").write_text("new\n")
    here.git("repack", "-a", "-d", "-q")  # with another URL, the mirror is another too
    (here.path / ".git/objects/info/alternates").unlink()
    fleet.url = url
    for host, act in (("there", lambda one: one.bring(None)), ("here", lambda one: one.push())):
        with pytest.raises(WorkspaceError) as refused:
            act(fleet.at(host, 1))
        assert refused.value.cause == "remote"
        assert "git ls-remote" in refused.value.hint
        if "://" in url:
            assert "s3cr3t" not in f"{refused.value} {refused.value.hint}"
    assert not (fleet.root / "there/trades/.git").exists()
    fleet.url = f"file://{fleet.remote.path}"
    assert fleet.at("here", 1).push()


def test_a_protected_branch_is_not_a_take_over(fleet):
    """The remote refuses while the branch has not moved: an obstacle, not another owner."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    hook = fleet.remote.path / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    with pytest.raises(WorkspaceError) as refused:
        workspace.push()
    assert refused.value.cause == "remote"


def test_a_transfer_that_hangs_is_ended(fleet, monkeypatch, tmp_path):
    """A host that does not answer blocks a transfer no longer than the limit."""
    script = tmp_path / "hangs"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    monkeypatch.setattr(transport, "WORKSPACE_TRANSFER_SECONDS", 0.3)
    fleet.url = "ssh://somewhere/a.git"
    with pytest.raises(WorkspaceError, match="longer than") as refused:
        fleet.at("here", 1).bring(None)
    assert refused.value.cause == "slow"


def test_the_users_own_way_to_their_remote_is_taken(fleet, monkeypatch, tmp_path):
    """Their ssh command, from their own settings."""
    script = tmp_path / "ssh"
    script.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    script.chmod(0o755)
    (tmp_path / "home/.gitconfig").write_text(f"[core]\n\tsshCommand = {script}\n")
    fleet.url = f"ssh://somewhere{fleet.remote.path}"
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    assert workspace.push().revision == fleet.work()


def test_a_half_made_clone_is_not_taken_for_one(fleet):
    """The leftovers of a kill are removed, and the clone starts again."""
    half_made = fleet.root / "here/.trades.arriving/.git"
    half_made.mkdir(parents=True)
    (half_made / "HEAD").write_text("ref: refs/heads/main\n")
    fleet.at("here", 1).bring(None)
    assert status(fleet.repository("here")) == ""
    assert not half_made.parent.exists()


def test_a_folder_that_has_files_but_no_repository_gets_one(fleet):
    """Ours stay as they are, what is the user's is kept before it is overwritten."""
    folder = fleet.root / "here/trades"
    (folder / ".rekindle").mkdir(parents=True)
    (folder / ".rekindle/ours").write_text("ours")
    (folder / "kept.txt").write_text("another\n")
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    (ref,) = workspace.left
    assert fleet.repository("here").git("show", f"{ref}:kept.txt") == "another"
    assert (folder / "kept.txt").read_text() == "kept\n"
    assert (folder / ".rekindle/ours").read_text() == "ours"


def test_a_committed_folder_of_ours_does_not_travel(fleet):
    """Our files on a host belong to that host: neither pushed nor overwritten."""
    person = Repository(fleet.root / "person")
    (person.path / ".rekindle").mkdir()
    person.commit(".rekindle/ours", "by mistake\n")
    person.git("push", "-q", fleet.url, "main")
    ours = fleet.root / "here/trades/.rekindle/ours"
    ours.parent.mkdir(parents=True)
    ours.write_text("of this host\n")
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    assert ours.read_text() == "of this host\n"
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    pushed = workspace.push()
    assert ".rekindle" not in fleet.remote.git("ls-tree", "--name-only", pushed.revision)
    fleet.at("there", 2).bring(pushed)
    assert not (fleet.repository("there").path / ".rekindle").exists()
    assert workspace.left == []


def test_a_nested_repository_does_not_block_a_push(fleet):
    """With a commit it is a submodule for git, without one it is left out."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    here = fleet.repository("here")
    Repository(here.path / "unborn").init()
    (here.path / "unborn/file").write_text("inside\n")
    Repository(here.path / "inside").init().commit()
    (here.path / "new.txt").write_text("new\n")
    pushed = workspace.push()
    fleet.at("there", 2).bring(pushed)
    there = fleet.repository("there")
    assert (there.path / "new.txt").read_text() == "new\n"
    assert (here.path / "inside/file.txt").exists()
    moved = fleet.at("there", 2).push()
    fleet.at("here", 3).bring(moved or pushed)
    assert (here.path / "inside/file.txt").exists()


def test_a_lock_of_a_killed_git_blocks_nothing(fleet):
    """Neither a push nor a return uses the user's index and its lock."""
    first = fleet.at("here", 1)
    pushed = first.bring(None)
    other = fleet.at("there", 2)
    other.bring(pushed)
    (fleet.repository("there").path / "new.txt").write_text("new\n")
    pushed = other.push()
    here = fleet.repository("here")
    (here.path / ".git/index.lock").touch()
    back = fleet.at("here", 3)
    back.bring(pushed)
    (here.path / "more.txt").write_text("more\n")
    assert back.push()


def test_a_revision_that_the_remote_has_lost_is_reported(fleet):
    """It is not replaced by anything else."""
    first = fleet.at("here", 1)
    pushed = first.bring(None)
    fleet.remote.git("update-ref", "-d", WORK)
    fleet.remote.git("gc", "-q", "--prune=now")
    with pytest.raises(WorkspaceError) as refused:
        fleet.at("there", 2).bring(pushed)
    assert refused.value.cause == "remote"
    # Here it still is.
    assert fleet.at("here", 2).bring(pushed).revision == fleet.work()


def test_a_clone_has_nothing_of_other_agents(fleet):
    """A remote may be shared by hundreds of them."""
    workspace = WorkBranch(
        fleet.root / "x/books", remote=fleet.url, agent="books", generation=1, host="x"
    )
    workspace.bring(None)
    fleet.at("here", 1).bring(None)
    assert "books" not in fleet.repository("here").git("for-each-ref")
    fleet.repository("here").git("fetch", "-q", "origin")
    assert "books" not in fleet.repository("here").git("for-each-ref")


def test_object_ids_of_the_longer_kind_work_too(fleet, tmp_path):
    """A repository with SHA-256."""
    fleet.remote = Repository(tmp_path / "long.git").init("--bare", "--object-format=sha256")
    fleet.url = f"file://{fleet.remote.path}"
    person = Repository(tmp_path / "long").init("--object-format=sha256")
    person.commit()
    person.git("push", "-q", fleet.url, "main")
    first = fleet.at("here", 1)
    first.bring(None)
    (fleet.repository("here").path / "new.txt").write_text("new\n")
    pushed = first.push()
    assert len(pushed.revision) == 64
    fleet.at("there", 2).bring(pushed)
    assert (fleet.repository("there").path / "new.txt").read_text() == "new\n"


def test_a_push_starts_git_a_dozen_times(fleet, monkeypatch):
    """Bounded, however many files there are."""
    workspace = fleet.at("here", 1)
    workspace.bring(None)
    for number in range(50):
        (fleet.repository("here").path / f"new-{number}.txt").write_text("new\n")
    calls = []
    real = git_process.run_git

    def counted(program, arguments, **more):
        calls.append(arguments[0])
        return real(program, arguments, **more)

    monkeypatch.setattr(git_process, "run_git", counted)
    assert workspace.push()
    assert len(calls) <= 12, calls


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("fatal: 'https://a:b@host/x.git/' failed", "fatal: 'https://host/x.git/' failed"),
        ("https://tok@en@host/x?key=1 no", "https://host/x no"),
        ("git@host:x.git", "git@host:x.git"),
        ("/a/b.git", "/a/b.git"),
    ],
)
def test_a_login_is_in_no_message(text, plain):
    """User and password are cut out of a URL; the rest stays readable."""
    assert document.strip_login(text) == plain


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://ann:token@host/x.git", "https://host/x.git"),
        ("https://token@host/x.git", "https://host/x.git"),
        ("ssh://git@host:22/x.git", "ssh://git@host:22/x.git"),
        ("ssh://git:pass@host:22/x.git", "ssh://git@host:22/x.git"),
        ("ssh://host:22/a@b.git", "ssh://host:22/a@b.git"),
        ("git@host:x.git", "git@host:x.git"),
        ("file:///a/b?c@d.git", "file:///a/b?c@d.git"),
        ("/a/b.git", "/a/b.git"),
    ],
)
def test_the_remote_url_for_other_hosts_has_no_login(url, told):
    """It leads to the same place."""
    assert document.strip_user(url) == told


def test_a_folder_is_pushed_to_its_origin(fleet):
    """Or to the only remote there is; with the folder's place in the repository."""
    person = Repository(fleet.root / "person")
    assert find_remote(person.path) is None
    person.git("remote", "add", "upstream", "https://host/up.git")
    assert find_remote(person.path) == RemoteLocation("https://host/up.git", "")
    person.git("remote", "add", "fork", "https://host/fork.git")
    assert find_remote(person.path) is None
    person.git("remote", "add", "origin", "../remote.git")
    (person.path / "a folder/deep").mkdir(parents=True)
    found = find_remote(person.path / "a folder/deep")
    assert found == RemoteLocation(str(fleet.remote.path), "a folder/deep")
    assert find_remote(fleet.root) is None


def test_a_persons_folder_is_published_as_it_is_and_the_first_host_has_it(fleet, tmp_path):
    """This includes unpushed commits and uncommitted files."""
    person = Repository(tmp_path / "person")
    person.commit("unpushed.txt", "a commit of its own\n")
    (person.path / "kept.txt").write_text("changed\n")
    (person.path / "new file.txt").write_text("untracked\n")
    with (person.path / ".gitignore").open("a") as ignored:
        ignored.write(".rekindle/\n")  # named there, git would refuse to leave it out
    (person.path / ".rekindle").mkdir()
    (person.path / ".rekindle/ours").write_text("ours\n")
    before, index = contents(person.path), (person.path / ".git/index").read_bytes()
    mine = WorkBranch(person.path, remote=fleet.url, agent="trades", generation=0, host="desk")
    published = mine.publish()
    assert (contents(person.path), (person.path / ".git/index").read_bytes()) == (before, index)
    fleet.at("a", 1).bring(published)
    there = fleet.repository("a")
    assert contents(there.path) == before
    assert status(there) == status(person)
    assert there.git("rev-parse", "HEAD") == person.git("rev-parse", "HEAD")


def test_published_again_what_the_branch_had_is_not_lost(fleet, tmp_path):
    host = fleet.at("a", 1)
    claim = host.bring(None)
    person = Repository(tmp_path / "person")
    again = WorkBranch(person.path, remote=fleet.url, agent="trades", generation=1, host="desk")
    published = again.publish()
    assert fleet.work() == published.revision
    assert fleet.is_in(claim.revision, published.revision)
    (fleet.repository("a").path / "late.txt").write_text("late\n")
    with pytest.raises(StalePushError):
        host.push()


def test_a_host_knows_whether_its_disk_still_has_what_it_claimed(fleet):
    """One that comes back under its name may have an empty disk, or an older one."""
    workspace = fleet.at("here", 2)
    assert not workspace.has("0" * 40)
    claim = workspace.bring(None)
    here = fleet.repository("here").path
    assert workspace.has(claim.revision)
    assert not fleet.at("here", 1).has(claim.revision), "the claim is a later one's"
    assert not fleet.at("here", 3).has(claim.revision), "it is not claimed for that one"
    shutil.copytree(here, fleet.root / "older")
    (here / "new.txt").write_text("new\n")
    pushed = workspace.push()
    assert workspace.has(claim.revision), "a host that knows less than was pushed loses nothing"
    assert workspace.has(pushed.revision)
    (here / "new.txt").write_text("in hand\n")
    assert workspace.has(pushed.revision), "what was not pushed yet is not to be overwritten"

    shutil.rmtree(here)
    (fleet.root / "older").rename(here)
    assert not workspace.has(pushed.revision)
    shutil.rmtree(here)
    assert not workspace.has(pushed.revision)
    here.mkdir()
    assert not workspace.has(pushed.revision)
    back = fleet.at("here", 3)
    assert back.has(back.bring(pushed).revision)
    assert (here / "new.txt").read_text() == "new\n"
