"""Pushes of several agents on a host wait for their turn, and then go together."""

import threading
import time

import pytest

from git_server import GitServer
from rekindle.documents.commits.work_commit import PushedWork, make_work_ref
from rekindle.errors import StalePushError, WorkspaceError
from rekindle.fleet.hosts.work_branch import WorkBranch
from rekindle.policy.fleet import push_rate
from rekindle.system.files import file_locks
from rekindle.system.git import push_queue
from rekindle.system.git.push_queue import PushAnswer, PushQueue, RefUpdate
from rekindle.system.git.shared_mirror import find_mirror, open_queue
from throwaway import Repository, isolate

AGENTS = 20
LIMIT = 6


class Host:
    """A host whose agents push over HTTP to one remote."""

    def __init__(self, root, url, per_minute):
        self.root, self.url, self.per_minute = root, url, per_minute
        self.mirrors = root / "host/mirrors"

    def agent(self, name, generation=1):
        return WorkBranch(
            self.work(name),
            remote=self.url,
            agent=name,
            generation=generation,
            host="here",
            mirrors=self.mirrors,
            queue=open_queue(self.mirrors, self.url, self.per_minute),
        )

    def work(self, name):
        return self.root / "host" / name / "work"

    @property
    def queue(self):
        return find_mirror(self.mirrors, self.url).with_suffix(".pushes")


@pytest.fixture
def remote(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    bare = Repository(tmp_path / "served/remote.git").init("--bare")
    bare.git("config", "http.receivepack", "true")
    person = Repository(tmp_path / "person").init()
    person.commit()
    person.git("push", "-q", str(bare.path), "main")
    return bare


def use_at_once(names, act):
    """Call a function for each name in a thread of its own, and return the results."""
    results = {}

    def call(name):
        try:
            results[name] = act(name)
        except (WorkspaceError, StalePushError) as error:
            results[name] = error

    threads = [threading.Thread(target=call, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return results


def test_twenty_agents_work_with_a_remote_that_allows_six_pushes_a_minute(
    remote, tmp_path, monkeypatch
):
    """The minute is shortened. Every agent's newest work arrives, and no push is reported."""
    period = 12.0
    monkeypatch.setattr(push_rate, "PUSH_PERIOD_SECONDS", period)
    names = [f"a{number}" for number in range(AGENTS)]
    with GitServer(tmp_path / "served", pushes=LIMIT, seconds=period) as server:
        host = Host(tmp_path, f"{server.url}/remote.git", LIMIT)

        def work(name):
            place = host.agent(name)
            place.bring(None)
            (host.work(name) / "new.txt").write_text(f"of {name}\n")
            return place.push()

        pushed = use_at_once(names, work)
    for name in names:
        ref = make_work_ref(name)
        assert remote.git("rev-parse", ref) == pushed[name].revision
        assert remote.git("show", f"{ref}:new.txt") == f"of {name}"
    # Forty pushes were needed without a queue.
    assert len(server.accepted) <= LIMIT + LIMIT
    assert sorted(path.name for path in host.queue.iterdir()) == ["lock", "rate.json"]


def test_a_remote_that_refuses_a_push_gets_it_again_later(remote, tmp_path, monkeypatch):
    """Its limit is lower than the host's setting."""
    monkeypatch.setattr(push_rate, "PUSH_PAUSE_SECONDS", 0.5)
    with GitServer(tmp_path / "served", pushes=1, seconds=2.0) as server:
        host = Host(tmp_path, f"{server.url}/remote.git", 1000)
        place = host.agent("one")
        place.bring(None)
        (host.work("one") / "new.txt").write_text("new\n")
        pushed = place.push()
        assert server.refused
    assert remote.git("rev-parse", make_work_ref("one")) == pushed.revision


def test_a_limit_that_lasts_is_reported(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(push_rate, "PUSH_PAUSE_SECONDS", 0.1)
    with GitServer(tmp_path / "served", pushes=1, seconds=3600) as server:
        host = Host(tmp_path, f"{server.url}/remote.git", 1000)
        place = host.agent("one")
        place.bring(None)
        (host.work("one") / "new.txt").write_text("new\n")
        monkeypatch.setattr(push_queue, "PUSH_PATIENCE_SECONDS", 0.5)
        with pytest.raises(WorkspaceError) as refused:
            place.push()
        assert refused.value.cause == "limited"
        assert "429" in str(refused.value)
        assert server.refused


def test_only_the_ref_that_another_host_has_moved_is_refused(remote, tmp_path):
    """Each agent's push has its own lease, even in one `git push`."""
    host = Host(tmp_path, str(remote.path), 1000)
    names = ["one", "two", "three"]
    for name in names:
        host.agent(name).bring(None)
        (host.work(name) / "new.txt").write_text("new\n")
    other = WorkBranch(
        tmp_path / "other/two", remote=host.url, agent="two", generation=2, host="there"
    )
    moved = other.bring(read_claim(host, "two"))
    # While the lock is held, the requests gather, and are pushed together.
    with file_locks.hold_lock(host.queue / "lock", 60) as held:
        assert held is not None
        results = {}
        pushing = threading.Thread(
            target=lambda: results.update(use_at_once(names, lambda name: host.agent(name).push()))
        )
        pushing.start()
        wait_for(lambda: len(list(host.queue.glob("*.request"))) == len(names))
    pushing.join(300)
    assert isinstance(results["two"], StalePushError)
    assert remote.git("rev-parse", make_work_ref("two")) == moved.revision
    for name in ("one", "three"):
        assert remote.git("rev-parse", make_work_ref(name)) == results[name].revision


def read_claim(host, name):
    copy = Repository(host.work(name))
    claim = copy.git("rev-parse", f"refs/rekindle/{name}/pushed")
    return PushedWork(claim, copy.git("rev-parse", "HEAD"), "main")


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def make_update(ref, **more):
    return RefUpdate(objects="/objects", ref=ref, commit="1", expected="", **more)


def test_a_request_of_a_killed_process_is_not_pushed(tmp_path):
    folder = tmp_path / "mirrors/one.pushes"
    folder.mkdir(parents=True)
    queue = PushQueue(folder, 1000)
    queue._write(folder / "dead.request", make_update("refs/heads/dead"))
    sent = []

    def send(updates):
        sent.append([one.ref for one in updates])
        return {one.ref: PushAnswer(is_done=True) for one in updates}

    assert queue.push(make_update("refs/heads/own"), send).is_done
    assert sent == [["refs/heads/own"]]
    assert not (folder / "dead.request").exists()


def test_a_damaged_repository_does_not_keep_others_from_pushing(tmp_path):
    """If git gives no answer for a whole batch, each update is pushed separately."""
    folder = tmp_path / "mirrors/one.pushes"
    folder.mkdir(parents=True)
    sent, lock = [], threading.Lock()

    def send(updates):
        refs = [one.ref for one in updates]
        with lock:
            sent.append(refs)
        is_done = "bad" not in refs
        words = "" if is_done else "unable to read tree"
        return {ref: PushAnswer(is_done=is_done, complaint=words) for ref in refs}

    with file_locks.hold_lock(folder / "lock", 60) as held:
        assert held is not None
        results = {}
        threads = [
            threading.Thread(
                target=lambda ref=ref: results.update(
                    {ref: PushQueue(folder, 1000).push(make_update(ref), send)}
                )
            )
            for ref in ("good", "bad", "fine")
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(list(folder.glob("*.request"))) == len(threads))
    for thread in threads:
        thread.join(120)
    assert {ref: one.is_done for ref, one in results.items()} == {
        "good": True,
        "bad": False,
        "fine": True,
    }
    assert results["bad"].complaint == "unable to read tree"
    assert sorted(map(len, sent)) == [1, 1, 1, 3]
