"""The audit trail: what it writes, where it works, and what it leaves alone."""

import os
import pathlib
import shutil
import subprocess
from datetime import UTC, datetime

import msgspec
import pytest

from conftest import RELAY
from rekindle.documents import events, relay
from rekindle.documents.commits import audit_commit
from rekindle.documents.events import (
    OwnerChanged,
    RelayCommitted,
)
from rekindle.policy.relay import audit_lag
from rekindle.policy.settings.runtime_settings import (
    AUDIT_BATCH,
    AUDIT_REST_SECONDS,
    Settings,
)
from rekindle.stores.audit_trail import AuditTrail
from rekindle.stores.files import FileStore
from rekindle.stores.log import event_log
from rekindle.system.files import file_locks
from rekindle.system.git import git_process
from rekindle.system.git import repository as system
from throwaway import Repository, isolate

REF = "refs/heads/rekindle/trades/relay"


@pytest.fixture
def said():
    """Return the messages to the user."""
    return []


@pytest.fixture
def audited(tmp_path, monkeypatch, clock, said):
    """Make a store in some folder, with an audit trail."""
    isolate(monkeypatch, tmp_path / "home")

    def opened(project):
        project.mkdir(parents=True, exist_ok=True)
        trail = AuditTrail(project, clock=clock, say=said.append)
        return FileStore(project, host="here", settings=Settings(), clock=clock, audit=trail)

    return opened


@pytest.fixture
def repository(tmp_path, audited):
    return Repository(tmp_path / "project").init()


@pytest.fixture
def store(audited, repository):
    return audited(repository.path)


def commit(store, what="parser", by="agent"):
    with store.writer("trades") as writer:
        return writer.commit_relay(relay.parse(RELAY.replace("parser", what)), by=by)


def committed(store):
    """The numbers of the log's relays, oldest first."""
    found = store.events_since("trades", 0).events
    return [one.seq for one in found if isinstance(one, RelayCommitted)]


def numbers(repository):
    return [seq for seq, _ in repository.trail()]


def test_a_committed_relay_is_a_commit_of_its_own(store, repository, clock, said):
    """Its tree holds the relay alone, its message the Next Action and what ties it to the log."""
    standing = commit(store)
    assert repository.git("show", f"{REF}:consensus.md") == RELAY.rstrip("\n")
    assert repository.git("ls-tree", "-r", "--name-only", REF) == "consensus.md"
    assert repository.git("log", "-1", "--format=%B", REF).split("\n") == [
        "Write the parser",
        "",
        f"Rekindle-Seq: {standing.seq}",
        "Rekindle-Gen: 1",
        f"Rekindle-Sha256: {standing.sha256}",
        "Rekindle-By: agent",
    ]
    who = repository.git("log", "-1", "--format=%an <%ae> %ct, %cn <%ce>", REF)
    moment = int(clock().timestamp())
    assert who == f"Rekindle <rekindle@localhost> {moment}, Rekindle <rekindle@localhost>"
    assert said == []


def test_each_relay_has_the_one_before_as_its_parent(store, repository):
    """The trail is one line of commits without anything of the user's history."""
    repository.commit()
    for what in ("parser", "printer", "manual"):
        commit(store, what)
    assert repository.trail() == [
        (2, "Write the parser"),
        (3, "Write the printer"),
        (4, "Write the manual"),
    ]
    assert repository.git("rev-list", "--count", REF) == "3"
    repository.git("fsck", "--strict", "--no-dangling")


def test_what_changes_no_relay_starts_no_git(store, monkeypatch):
    """Heartbeats, loops and readers pay nothing for the trail."""
    commit(store)
    monkeypatch.setattr(system, "Repository", None)
    with store.writer("trades") as writer:
        writer.fold()
    assert store.read("trades").committed.documents["relay"].headline == "Write the parser"


def in_a_repository_without_a_commit(root):
    return Repository(root / "project").init(), ""


def detached(root):
    made = Repository(root / "project").init()
    made.commit()
    made.git("checkout", "-q", "--detach")
    return made, ""


def dirty(root):
    made = Repository(root / "project").init()
    made.commit()
    (made.path / "file.txt").write_text("changed\n")
    (made.path / "staged.txt").write_text("staged\n")
    made.git("add", "staged.txt")
    return made, ""


def with_index_lock(root):
    made = Repository(root / "project").init()
    made.commit()
    (made.path / ".git/index.lock").touch()
    return made, ""


def in_a_linked_worktree(root):
    main = Repository(root / "main").init()
    main.commit()
    main.git("worktree", "add", "-q", str(root / "linked"))
    return Repository(root / "linked"), ""


def in_a_submodule(root):
    inner = Repository(root / "inner").init()
    inner.commit()
    outer = Repository(root / "outer").init()
    allowed = ("-c", "protocol.file.allow=always")
    outer.git(*allowed, "submodule", "--quiet", "add", str(inner.path), "inner")
    return Repository(root / "outer/inner"), ""


def in_a_subfolder(root):
    made = Repository(root / "project").init()
    made.commit()
    return made, "deep/below"


def beside_a_bare_repository(root):
    source = Repository(root / "source").init()
    source.commit()
    place = Repository(root / "place")
    place.path.mkdir()
    place.git("clone", "-q", "--bare", str(source.path), ".bare")
    (place.path / ".git").write_text("gitdir: ./.bare\n")
    place.git("worktree", "add", "-q", "tree")
    return Repository(place.path / "tree"), ""


def with_sha256(root):
    made = Repository(root / "project").init("--object-format=sha256")
    made.commit()
    return made, ""


def with_packed_refs(root):
    made = Repository(root / "project").init()
    made.commit()
    made.git("pack-refs", "--all")
    return made, ""


def in_a_partial_clone(root):
    source = Repository(root / "source").init()
    source.commit()
    source.git("config", "uploadpack.allowFilter", "true")
    clone = ("clone", "-q", "--filter=blob:none", f"file://{source.path}", "clone")
    Repository(root).git(*clone)
    shutil.rmtree(source.path)
    return Repository(root / "clone"), ""


SITUATIONS = [
    in_a_repository_without_a_commit,
    detached,
    dirty,
    with_index_lock,
    in_a_linked_worktree,
    in_a_submodule,
    in_a_subfolder,
    beside_a_bare_repository,
    with_sha256,
    with_packed_refs,
    in_a_partial_clone,
]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.__name__)
def test_it_works_wherever_a_repository_may_be(audited, tmp_path, said, situation):
    """The trail grows, and index, HEAD, refs, config and status stay as they were."""
    made, below = situation(tmp_path)
    store = audited(made.path / below)
    store.create("trades")
    before = made.users_own()
    for what in ("parser", "printer", "manual"):
        commit(store, what)
    assert numbers(made) == committed(store) == [2, 3, 4]
    assert made.users_own() == before
    assert said == []
    repository_is_sound = made.git("fsck", "--strict", "--no-dangling", check=False)
    assert "error" not in repository_is_sound


def test_the_environment_of_a_hook_leads_nowhere(audited, repository, tmp_path, monkeypatch, said):
    """GIT_DIR and its like, handed down by a hook that runs us, do not count."""
    other = Repository(tmp_path / "other").init()
    other.commit()
    before = other.users_own()
    store = audited(repository.path)
    for name, value in {
        "GIT_DIR": other.path / ".git",
        "GIT_WORK_TREE": other.path,
        "GIT_INDEX_FILE": other.path / ".git/index",
        "GIT_OBJECT_DIRECTORY": other.path / ".git/objects",
        "GIT_NAMESPACE": "elsewhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_TRACE": tmp_path / "trace",
    }.items():
        monkeypatch.setenv(name, str(value))
    commit(store)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert numbers(repository) == [2]
    assert other.users_own() == before
    assert not (tmp_path / "trace").exists()
    assert said == []


def test_it_needs_no_identity(store, repository, tmp_path, said):
    """If git would ask for your name, the trail is still written, with a reflog too."""
    settings = tmp_path / "home/.gitconfig"
    settings.write_text("[user]\n\tuseConfigOnly = true\n[core]\n\tlogAllRefUpdates = always\n")
    commit(store)
    commit(store, "printer")
    assert numbers(repository) == [2, 3]
    assert said == []


def test_settings_that_change_what_git_prints_change_nothing(store, repository, tmp_path, said):
    """Colours, encodings, signatures and separators of the user's taste are not ours."""
    (tmp_path / "home/.gitconfig").write_text(
        "[color]\n\tui = always\n\tdiff = always\n\tbranch = always\n"
        "[i18n]\n\tlogOutputEncoding = UTF-16\n\tcommitEncoding = ISO-8859-1\n"
        "[log]\n\tshowSignature = true\n\tdecorate = full\n[trailer]\n\tseparators = '='\n"
        "[core]\n\tabbrev = 5\n\tquotePath = true\n[format]\n\tpretty = oneline\n"
    )
    for what in ("pärser", "printer"):
        commit(store, what)
    assert [seq for seq, _ in store.audit_commits("trades")] == [3, 2]
    (tmp_path / "home/.gitconfig").write_text("")
    assert repository.trail() == [(2, "Write the pärser"), (3, "Write the printer")]
    assert said == []


def test_while_another_command_writes_the_trail_no_command_waits_for_long(
    store, repository, monkeypatch, said
):
    """The relay is committed, the trail lags, and the next relay catches it up."""
    store.create("trades")
    monkeypatch.setattr("rekindle.stores.audit_trail.LOCK_WAIT_SECONDS", 0.05)
    with file_locks.hold_lock(store.folder("trades").audit_lock, 0) as lock:
        assert lock is not None
        commit(store)
    assert numbers(repository) == []
    commit(store, "printer")
    assert numbers(repository) == committed(store) == [2, 3]
    assert said == []


def test_outside_a_repository_it_says_so_once(audited, tmp_path, said):
    """One notice, and every relay is committed as ever."""
    store = audited(tmp_path / "project")
    for what in ("parser", "printer"):
        commit(store, what)
    assert [(one.cause, one.hint) for one in said] == [("outside", "create one: git init")]
    assert committed(store) == [2, 3]
    notes = [one for one in store.inspect("trades") if "not in a git repository" in one.what]
    assert [one.is_note for one in notes] == [True]


def test_without_git_it_says_so_once(store, tmp_path, monkeypatch, said):
    """One notice, and every relay is committed as ever."""
    monkeypatch.setenv("PATH", str(tmp_path))
    commit(store)
    commit(store, "printer")
    assert [one.cause for one in said] == ["absent"]
    assert committed(store) == [2, 3]


def test_a_repository_that_comes_later_gets_every_relay(audited, tmp_path, said):
    """After git init the trail begins with the first relay of the log, without a warning."""
    store = audited(tmp_path / "project")
    commit(store)
    commit(store, "printer")
    made = Repository(tmp_path / "project").init()
    commit(store, "manual")
    assert numbers(made) == [2, 3, 4]
    assert not store.folder("trades").audit.exists()
    assert len(said) == 1


def test_an_obstacle_that_comes_back_is_said_again(audited, tmp_path, said):
    """A notice is forgotten once the trail could be written."""
    store = audited(tmp_path / "project")
    commit(store)
    made = Repository(tmp_path / "project").init()
    commit(store, "printer")
    (made.path / ".git").rename(made.path / "away")
    commit(store, "manual")
    assert [one.cause for one in said] == ["outside", "outside"]


def test_a_backlog_is_written_in_batches_with_nothing_twice(audited, tmp_path, said):
    """One command adds a bounded number; the doctor's adds the rest."""
    store = audited(tmp_path / "project")
    for number in range(AUDIT_BATCH + 5):
        commit(store, f"part {number}")
    made = Repository(tmp_path / "project").init()
    commit(store, "manual")
    assert numbers(made) == committed(store)[:AUDIT_BATCH]
    behind = [one.what for one in store.inspect("trades")]
    assert behind == ["relays that are missing from the git audit trail: 6"]
    store.catch_up_audit("trades")
    assert numbers(made) == committed(store)
    assert store.inspect("trades") == []
    store.catch_up_audit("trades")
    assert numbers(made) == committed(store)


def test_the_same_relay_twice_is_two_revisions(store, repository):
    """A relay that is twice in the log is twice in the trail, each with its own number."""
    commit(store)
    commit(store)
    assert numbers(repository) == committed(store) == [2, 3]


def test_a_branch_that_was_deleted_is_written_again(store, repository):
    """The log has everything: the trail comes back whole, with the very same commits."""
    commit(store)
    commit(store, "printer")
    before = repository.git("rev-parse", f"{REF}")
    repository.git("branch", "-q", "-D", "rekindle/trades/relay")
    store.catch_up_audit("trades")
    assert repository.git("rev-parse", REF) == before


def test_a_relay_that_the_archive_lost_is_left_out(store, repository, monkeypatch):
    """Other bytes never replace those that the log names."""
    commit(store)
    with monkeypatch.context() as away:
        away.setattr(AuditTrail, "follow", lambda *_, **__: False)
        lost = commit(store, "printer")
    (store.folder("trades").path / lost.path).write_text("## Next Action\nSomething else\n")
    commit(store, "manual")
    assert repository.trail() == [(2, "Write the parser"), (4, "Write the manual")]


def test_a_foreign_branch_of_that_name_is_left_alone(store, repository, said):
    """A foreign branch is not built upon; the notice names the command that fixes it."""
    repository.commit()
    repository.git("branch", "rekindle/trades/relay")
    before = repository.git("rev-parse", REF)
    commit(store)
    commit(store, "printer")
    assert repository.git("rev-parse", REF) == before
    (notice,) = said
    assert "not Rekindle's" in str(notice)
    repository.git(*notice.hint.split()[1:])
    store.catch_up_audit("trades")
    assert numbers(repository) == committed(store)


def test_a_foreign_commit_on_top_of_ours_stops_the_trail(store, repository, said):
    """A commit that is not ours is neither dropped nor buried."""
    commit(store)
    tree = repository.git("rev-parse", f"{REF}^{{tree}}")
    foreign = repository.git("commit-tree", tree, "-p", REF, "-m", "mine")
    repository.git("update-ref", REF, foreign)
    commit(store, "printer")
    assert repository.git("rev-parse", REF) == foreign
    assert [one.cause for one in said] == ["foreign"]


def test_the_trail_of_another_log_is_left_alone(audited, repository, said):
    """Two projects of one repository with an agent of the same name do not mix their relays."""
    first, second = audited(repository.path / "one"), audited(repository.path / "two")
    commit(first)
    commit(second, "printer")
    commit(second, "manual")
    commit(first, "index")
    assert repository.trail() == [(2, "Write the parser"), (3, "Write the index")]
    assert [str(one) for one in said] == [
        "git audit trail: the branch rekindle/trades/relay is the trail of another log"
    ]


def test_a_branch_that_only_stands_for_another_is_not_followed(store, repository, said):
    """Through a symbolic ref the user's own branch would move."""
    repository.commit()
    repository.git("symbolic-ref", REF, "refs/heads/main")
    before = repository.users_own()
    commit(store)
    assert repository.users_own() == before
    (notice,) = said
    repository.git(*notice.hint.split()[1:])
    store.catch_up_audit("trades")
    assert numbers(repository) == [2]


@pytest.mark.parametrize("where", ["here", "in a linked worktree"])
def test_a_branch_that_is_checked_out_is_not_moved(store, repository, tmp_path, said, where):
    """Its files would look changed; the trail continues when the user switches away."""
    repository.commit()
    commit(store)
    looking = repository
    if where == "here":
        repository.git("checkout", "-q", "rekindle/trades/relay")
    else:
        looking = Repository(tmp_path / "linked")
        repository.git("worktree", "add", "-q", str(looking.path), "rekindle/trades/relay")
    commit(store, "printer")
    assert looking.git("status", "--porcelain", "--untracked-files=no") == ""
    assert [one.cause for one in said] == ["checked-out"]
    looking.git("checkout", "-q", "--detach")
    commit(store, "manual")
    assert numbers(repository) == committed(store) == [2, 3, 4]


def test_a_branch_that_is_checked_out_but_unborn_is_not_made(store, repository, said):
    """HEAD may name the branch before it exists."""
    repository.git("symbolic-ref", "HEAD", REF)
    commit(store)
    assert repository.git("for-each-ref") == ""
    assert [one.cause for one in said] == ["checked-out"]


@pytest.mark.parametrize(
    "taken", ["rekindle", "rekindle/trades", "rekindle/trades/relay/notes"], ids=str
)
def test_a_branch_in_the_way_is_named_with_the_command_that_moves_it(
    store, repository, said, taken
):
    """Git keeps no branch below another: the one in the way is the user's to rename."""
    repository.commit()
    repository.git("branch", taken)
    before = repository.users_own()
    commit(store)
    assert repository.users_own() == before
    (notice,) = said
    assert (notice.cause, taken in str(notice)) == ("in-the-way", True)
    repository.git(*notice.hint.split()[1:])
    commit(store, "printer")
    assert numbers(repository) == committed(store) == [2, 3]


def test_a_lock_that_a_killed_git_left_is_named(store, repository, said):
    """The notice names the file; once that is gone the trail is caught up."""
    commit(store)
    lock = repository.path / ".git" / f"{REF}.lock"
    lock.touch()
    commit(store, "printer")
    (notice,) = said
    assert str(lock) in notice.hint
    assert str(notice).endswith(f"Unable to create '{lock}': File exists.")
    lock.unlink()
    commit(store, "manual")
    assert numbers(repository) == committed(store)


def test_a_repository_of_another_user_is_refused_as_git_does(store, monkeypatch, said):
    """Git's own rule on unsafe folders is respected, and the relay is committed."""
    called = system.Repository._call

    def stricter(self, arguments, **more):
        monkeypatch.setitem(git_process.OWN_ENVIRONMENT, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        return called(self, arguments, **more)

    monkeypatch.setattr(system.Repository, "_call", stricter)
    commit(store)
    assert [one.cause for one in said] == ["unsafe"]
    assert committed(store) == [2]


def fake_git(folder, script):
    """A git that does what a shell script says; `real` is the other one."""
    folder.mkdir(exist_ok=True)
    path = folder / "git"
    path.write_text(f"#!/bin/sh\nreal={shutil.which('git')}\n{script}\n")
    path.chmod(0o755)
    return folder


def test_a_git_that_hangs_delays_one_command_and_then_rests(
    store, repository, monkeypatch, said, clock
):
    """A command waits a bounded time; the next ones do not wait at all; later it is caught up."""
    calls = repository.path / "calls"
    fake = fake_git(repository.path / "fake", f"echo >> {calls}\nsleep 3600 & wait")
    monkeypatch.setattr("rekindle.stores.audit_trail.AUDIT_CALL_SECONDS", 0.3)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{fake}:{path}")
    commit(store)
    called = calls.read_text()
    assert called
    commit(store, "printer")
    assert calls.read_text() == called, "git is not even asked"
    assert [one.cause for one in said] == ["slow"]
    monkeypatch.setenv("PATH", path)
    commit(store, "index")
    assert numbers(repository) == []
    clock.forward(seconds=AUDIT_REST_SECONDS)
    commit(store, "manual")
    assert numbers(repository) == committed(store) == [2, 3, 4, 5]


def test_a_git_that_ignores_the_request_to_end_is_killed(store, tmp_path, monkeypatch, said):
    """Even then the command ends, with the relay committed."""
    fake = fake_git(tmp_path / "fake", "trap '' TERM\nwhile :; do sleep 0.1; done")
    monkeypatch.setattr("rekindle.stores.audit_trail.AUDIT_CALL_SECONDS", 0.2)
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    commit(store)
    assert [one.cause for one in said] == ["slow"]
    assert committed(store) == [2]


@pytest.mark.parametrize(
    "script", ["exit 1", "echo fatal: nonsense >&2; exit 128", "kill -9 $$", "echo rubbish"]
)
def test_a_git_that_fails_fails_no_command(store, tmp_path, monkeypatch, said, script):
    """Whatever git does, the relay is committed; the problem is reported at most once."""
    fake = fake_git(tmp_path / "fake", script)
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    commit(store)
    commit(store, "printer")
    assert committed(store) == [2, 3]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("complaint", "said"),
    [
        ("fatal: no.\n\nAnother git process\nseems to be running.", "fatal: no."),
        ("warning: odd\nhint: look\nerror: bad file\nfatal: over", "error: bad file"),
        ("\n  something else\nmore", "something else"),
        ("", "no reason given"),
        (f"fatal: {'x' * 5000}", f"fatal: {'x' * 992}…"),
    ],
)
def test_the_line_of_git_that_gives_the_reason_is_shown(complaint, said):
    """Its advice, which follows, is for people who called git themselves."""
    assert system._make_refusal("gc", complaint).reason == f"git gc: {said}"


def test_a_git_that_cannot_be_started_fails_no_command(store, tmp_path, monkeypatch, said):
    """A program that the kernel refuses is one more notice."""
    fake = fake_git(tmp_path / "fake", "")
    (fake / "git").write_text("#!/nowhere/at/all\n")
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    commit(store)
    assert [one.cause for one in said] == ["broken"]
    assert committed(store) == [2]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_branch_that_is_moved_meanwhile_is_not_overwritten(
    store, repository, monkeypatch, said, is_there
):
    """If the branch is moved or created between our read and our write, it stays where it is."""
    foreign = repository.commit()
    if is_there:
        commit(store)
    moved = system.Repository.move

    def after_another_move(self, ref, new, old):
        repository.git("update-ref", ref, foreign)
        return moved(self, ref, new, old)

    monkeypatch.setattr(system.Repository, "move", after_another_move)
    commit(store, "printer")
    assert repository.git("rev-parse", REF) == foreign
    assert [one.cause for one in said] == ["foreign"]


def test_a_relay_that_another_process_wrote_meanwhile_is_not_written_twice(
    store, repository, monkeypatch, said
):
    """Another process wrote the same relay between our read and our write."""
    commit(store)
    moved = system.Repository.move
    rivals = []

    def second(self, ref, new, old):
        if not rivals:
            rivals.append(store._audit)
            store._audit._catch_up(store.folder("trades"), 3)
        return moved(self, ref, new, old)

    monkeypatch.setattr(system.Repository, "move", second)
    commit(store, "printer")
    assert rivals
    assert numbers(repository) == committed(store) == [2, 3]
    assert said == []


def test_a_branch_that_never_stands_still_is_given_up_on(store, repository, monkeypatch, said):
    """The number of tries is bounded."""
    monkeypatch.setattr(system.Repository, "move", lambda *_: False)
    commit(store)
    assert [one.cause for one in said] == ["moved"]
    assert committed(store) == [2]


def test_git_is_told_to_flush_what_it_writes(store, repository, tmp_path, monkeypatch):
    """After a power loss no ref may name objects that are gone: both are flushed, by git's count.

    A person's own settings, which flush nothing, do not change that.
    """
    repository.git("config", "core.fsync", "none")
    trace = tmp_path / "trace"
    monkeypatch.setitem(git_process.OWN_ENVIRONMENT, "GIT_TRACE2_EVENT", str(trace))
    commit(store)
    running, flushed = {}, dict.fromkeys(("unpack-objects", "update-ref"), 0)
    for event in map(msgspec.json.decode, trace.read_bytes().splitlines()):
        if event["event"] == "cmd_name":
            running[event["sid"]] = event["name"]
        elif event.get("key") == "fsync/hardware-flush":
            flushed[running[event["sid"]]] += int(event["value"])
    assert flushed == {"unpack-objects": 3, "update-ref": 1}  # a blob, a tree and a commit; the ref


def test_a_full_disk_under_the_marker_fails_no_command(audited, tmp_path, said):
    """If even the notice cannot be stored, it is repeated, and nothing else happens."""
    store = audited(tmp_path / "project")
    store.create("trades")
    store.folder("trades").audit.mkdir()
    commit(store)
    commit(store, "printer")
    assert [one.cause for one in said] == ["outside", "outside"]
    assert committed(store) == [2, 3]


def test_what_a_fenced_host_wrote_is_not_in_the_trail(store, repository):
    """A relay that a host appended after it had lost the agent never happened."""
    commit(store)
    folder = store.folder("trades")
    real = next(iter(store.newest_events("trades")))
    path = store.folder("trades").log
    taken = OwnerChanged(ts=real.ts, seq=3, gen=2, host="there", previous="here")
    late = RelayCommitted(
        ts=real.ts, seq=3, gen=1, sha256=real.sha256, path=real.path, by="agent", headline="Late"
    )
    after = RelayCommitted(
        ts=real.ts, seq=4, gen=2, sha256=real.sha256, path=real.path, by="agent", headline="After"
    )
    event_log.append_lines(path, [events.render(one) for one in (taken, late, after)])
    AuditTrail(repository.path, clock=lambda: real.ts, say=print).follow(folder, 4)
    assert repository.trail() == [(2, "Write the parser"), (4, "After")]


START = datetime(2026, 4, 9, tzinfo=UTC)


def event(seq):
    return RelayCommitted(ts=START, seq=seq, gen=1, sha256="a" * 64, path="p", by="agent")


def test_the_lag_ends_where_the_disk_confirmed():
    """An event that another writer is just appending may still be taken back: it waits."""
    found = audit_lag.find_audit_lag(None, [event(9), event(7), event(5)], confirmed=7)
    assert [one.seq for one in found.missing] == [5, 7]


def test_the_lag_reads_back_only_to_the_tip():
    """A long log costs no more than what the trail lacks."""
    read = []

    def newest_first():
        for seq in range(100, 0, -1):
            read.append(seq)
            yield event(seq)

    found = audit_lag.find_audit_lag(
        audit_commit.AuditRevision(97, 1, "a" * 64), newest_first(), confirmed=100
    )
    assert [one.seq for one in found.missing] == [98, 99, 100]
    assert read == [100, 99, 98, 97]


def test_a_trail_ahead_of_the_log_is_another_log_s():
    """A log that was lost and started again does not continue the old one's trail."""
    found = audit_lag.find_audit_lag(
        audit_commit.AuditRevision(412, 1, "a" * 64), [event(3), event(2)], confirmed=3
    )
    assert not found.is_ours


@pytest.mark.parametrize(
    "headline",
    ["", "Rekindle-Seq: 9", "two\nlines", "a\n\nRekindle-Seq: 9\nRekindle-Gen: 9", "ä " * 2000],
)
def test_a_message_tells_the_revision_whatever_the_headline(headline):
    """The words of an agent cannot forge a trailer."""
    made = RelayCommitted(
        ts=START, seq=5, gen=2, sha256="b" * 64, path="p", by=f"x\n{headline}", headline=headline
    )
    assert audit_commit.parse(audit_commit.render(made)) == audit_commit.AuditRevision(
        5, 2, "b" * 64
    )


def test_hooks_that_are_mere_settings_do_not_reach_git(store, repository, monkeypatch):
    """From git 2.54 on `hook.<name>.event` arms a hook that core.hooksPath does not disarm."""
    repository.git("config", "hook.a=b c.event", "reference-transaction")
    repository.git("config", "hook.a=b c.command", f"touch {repository.path}/sung")
    seen = []
    started = subprocess.Popen

    def watched(arguments, **more):
        seen.append((arguments, more["env"]))
        return started(arguments, **more)

    monkeypatch.setattr(subprocess, "Popen", watched)
    commit(store)
    monkeypatch.undo()
    (given,) = (env for arguments, env in seen if "update-ref" in arguments)
    assert "hook" not in pathlib.Path(given["GIT_COMMON_DIR"], "config").read_text()
    assert not any(value.startswith("hook.") for value in given.values())
    assert given["GIT_CONFIG_GLOBAL"] == os.devnull
    assert not (repository.path / "sung").exists()
    assert all(arguments[0].endswith("/git") and "sh" not in arguments for arguments, _ in seen)
