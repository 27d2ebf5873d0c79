"""A mirror of a remote, whose objects all clones on a host read."""

import shutil
import threading

import pytest

from rekindle.documents.commits.work_commit import make_work_ref
from rekindle.errors import WorkspaceError
from rekindle.fleet.hosts.work_branch import WorkBranch
from rekindle.system.git.remote_repository import RemoteRepository, RemoteState
from rekindle.system.git.shared_mirror import SharedMirror, find_mirror
from throwaway import Repository, isolate


class Host:
    """A remote with history, and a host whose agents share a mirror."""

    def __init__(self, root):
        self.root = root
        self.remote = Repository(root / "remote.git").init("--bare")
        self.url = f"file://{self.remote.path}"
        self.person = Repository(root / "person").init()
        self.person.commit("a.txt", "a\n")
        self.person.git("tag", "v1")
        self.person.git("branch", "side")
        self.person.git("push", "-q", "--tags", self.url, "main", "side")

    def agent(self, name, generation=1):
        return WorkBranch(
            self.root / "host" / name / "work",
            remote=self.url,
            agent=name,
            generation=generation,
            host="here",
            mirrors=self.root / "host/mirrors",
        )

    def repository(self, name):
        return Repository(self.root / "host" / name / "work")

    @property
    def mirror(self):
        return find_mirror(self.root / "host/mirrors", self.url)


@pytest.fixture
def host(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "home")
    return Host(tmp_path)


def count_objects(repository):
    """Return the number of objects that only this clone has."""
    assert "in-pack: 0" in repository.git("count-objects", "-v")
    return int(repository.git("count-objects").split()[0])


@pytest.fixture
def fetches(monkeypatch):
    calls = []
    real = RemoteRepository.fetch_branches

    def counted(self, folder):
        calls.append(folder)
        real(self, folder)

    monkeypatch.setattr(RemoteRepository, "fetch_branches", counted)
    return calls


def test_clones_store_only_their_own_objects(host, fetches):
    """Their refs and settings are those of an ordinary clone, and the remote is fetched once."""
    threads = [threading.Thread(target=host.agent(f"a{one}").bring, args=(None,)) for one in "123"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(fetches) == 1
    for name in ("a1", "a2", "a3"):
        here = host.repository(name)
        refs = here.git("for-each-ref", "--format=%(refname)").splitlines()
        assert {"refs/heads/main", "refs/remotes/origin/main", "refs/remotes/origin/side"} <= {
            *refs
        }
        assert "refs/tags/v1" in refs
        assert here.git("rev-parse", "origin/HEAD") == here.git("rev-parse", "HEAD")
        assert here.git("rev-parse", "--abbrev-ref", "@{upstream}") == "origin/main"
        assert here.git("status", "--porcelain") == ""
        assert count_objects(here) == 2, "the claim, and an empty tree"
        here.git("fsck", "--strict")
        here.git("fetch", "-q", "origin")
        assert "rekindle" not in here.git("for-each-ref", "refs/remotes")


def test_agents_commits_are_never_only_in_the_mirror(host):
    """They are in the clone, and with all their objects on the remote."""
    agent = host.agent("one")
    agent.bring(None)
    here = host.repository("one")
    made = here.commit("made.txt", "made here\n")
    agent.push()
    mirror = Repository(host.mirror)
    assert mirror.git("cat-file", "-t", made, check=False) == ""
    host.remote.git("fsck", "--strict", "--full")
    assert host.remote.git("cat-file", "-t", made) == "commit"
    shutil.rmtree(host.mirror)
    assert host.repository("one").git("cat-file", "-t", made) == "commit"


def test_new_commits_of_the_remote_are_fetched_once_for_all_agents(host, fetches):
    for name in ("one", "two"):
        host.agent(name).bring(None)
    new = host.person.commit("b.txt", "b\n" * 1000)
    host.person.git("push", "-q", host.url, "main")
    fetches.clear()
    for name in ("one", "two"):
        host.agent(name, 2).bring(None)
        assert host.repository(name).git("rev-parse", "HEAD") == new
        assert count_objects(host.repository(name)) == 3, "two claims, and an empty tree"
    assert len(fetches) == 1


@pytest.mark.parametrize("fault", ["deleted", "no pack", "bit flip"])
def test_a_lost_or_damaged_mirror_is_fetched_again(host, fault):
    """The agent continues with its work; what it has not pushed is kept."""
    agent = host.agent("one")
    agent.bring(None)
    here = host.repository("one")
    here.commit("made.txt", "made here\n")
    pushed = agent.push()
    (here.path / "late.txt").write_text("not pushed\n")
    if fault == "deleted":
        shutil.rmtree(host.mirror)
        assert not host.agent("one").has(pushed.revision)
    else:
        pack = next((host.mirror / "objects/pack").glob("*.pack"))
        pack.chmod(0o600)
        if fault == "no pack":
            pack.unlink()
        else:
            data = bytearray(pack.read_bytes())
            data[len(data) // 2] ^= 0xFF
            pack.write_bytes(data)
        assert not RemoteRepository(host.url, "").is_sound(host.mirror)
    back = host.agent("one", 2)
    back.bring(pushed)
    assert (here.path / "made.txt").read_text() == "made here\n"
    here.git("fsck", "--full")
    Repository(host.mirror).git("fsck", "--full")
    assert back.left or (here.path / "late.txt").exists()
    host.agent("two").bring(None)


def test_commits_that_the_remotes_branches_lost_come_from_the_work_branch(host):
    """A person rewrote main, and the mirror with the old commits is gone."""
    agent = host.agent("one")
    agent.bring(None)
    here = host.repository("one")
    old = here.git("rev-parse", "HEAD")
    (here.path / "new.txt").write_text("new\n")
    pushed = agent.push()
    host.person.git("checkout", "-q", "--orphan", "fresh")
    host.person.commit("other.txt", "other\n")
    host.person.git("push", "-q", "-f", host.url, "fresh:main", ":side", ":v1")
    shutil.rmtree(host.mirror)
    here.git("update-ref", "-d", "refs/tags/v1")
    host.agent("one", 2).bring(pushed)
    assert here.git("rev-parse", "HEAD") == old
    here.git("fsck", "--full")


def test_a_mirror_keeps_commits_that_left_the_remote(host):
    """Clones may still need them, so a fetch never removes an object."""
    host.agent("one").bring(None)
    old = host.person.git("rev-parse", "main")
    host.person.git("checkout", "-q", "--orphan", "fresh")
    host.person.commit("other.txt", "other\n")
    host.person.git("push", "-q", "-f", host.url, "fresh:main", ":side", ":v1")
    SharedMirror(host.root / "host/mirrors", host.url).update("0" * 40)
    mirror = Repository(host.mirror)
    assert mirror.git("rev-parse", "main") == host.person.git("rev-parse", "fresh")
    assert mirror.git("cat-file", "-t", old) == "commit"
    host.repository("one").git("fsck", "--full")


def test_each_remote_has_its_own_mirror(tmp_path):
    one = find_mirror(tmp_path, "https://host/a.git")
    assert one != find_mirror(tmp_path, "https://host/b.git")
    assert one == find_mirror(tmp_path, "https://host/a.git")


def test_a_clone_that_reads_another_repository_is_not_pushed(host):
    """An agent in a sandbox could publish commits that only Rekindle can read."""
    agent = host.agent("one")
    agent.bring(None)
    secret = Repository(host.root / "secret").init()
    commit = secret.commit("key.txt", "of another team\n")
    here = host.repository("one")
    alternates = here.path / ".git/objects/info/alternates"
    alternates.write_text(f"{alternates.read_text()}{secret.path}/.git/objects\n")
    here.git("checkout", "-q", "-B", "main", commit)
    with pytest.raises(WorkspaceError) as refused:
        agent.push()
    assert refused.value.cause == "linked"
    assert host.remote.git("cat-file", "-t", commit, check=False) == ""


def test_the_next_lease_repairs_a_clone_that_reads_another_repository(host):
    """The same if the remote's URL has changed, and with it the mirror."""
    agent = host.agent("one")
    pushed = agent.bring(None)
    host.url += "/"
    moved = host.agent("one", 1)
    assert not moved.has(pushed.revision)
    moved = host.agent("one", 2)
    moved.bring(pushed)
    here = host.repository("one")
    alternates = here.path / ".git/objects/info/alternates"
    assert alternates.read_text() == f"{host.mirror}/objects\n"
    here.git("fsck", "--full")
    (here.path / "new.txt").write_text("new\n")
    assert moved.push()


def test_a_clone_of_an_earlier_version_continues(host):
    """It has all objects itself, and needs no mirror."""
    here = host.repository("one")
    here.path.parent.mkdir(parents=True)
    host.person.git("clone", "-q", "--no-checkout", host.url, str(here.path))
    agent = host.agent("one")
    pushed = agent.bring(None)
    (here.path / "new.txt").write_text("new\n")
    assert agent.push()
    assert agent.has(pushed.revision)
    assert not host.mirror.exists()
    assert host.remote.git("for-each-ref", make_work_ref("one"))


def test_the_login_of_the_remote_is_not_in_a_clone(host):
    mirror = SharedMirror(host.root / "host/mirrors", host.url)
    mirror._url = "https://bot:ghp-secret@git.example.org/work.git"
    mirror.clone(folder := host.root / "clone", RemoteState("main", "", ""))
    config = (folder / ".git/config").read_text()
    assert 'url = "https://git.example.org/work.git"' in config
    assert "ghp-secret" not in config
