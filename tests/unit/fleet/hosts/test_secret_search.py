"""Work with a key in it is not pushed."""

import pytest

from rekindle.errors import WorkspaceError
from rekindle.fleet.hosts.secret_search import SecretSearch
from rekindle.fleet.hosts.work_branch import WorkBranch
from throwaway import Repository

TOKEN = "ghp_" + "k3JdW9qLz8XvB2nMfR7tYcH5sP1aEoU6gDx4"


def open_branch(fleet, search, generation=1):
    return WorkBranch(
        fleet.root / "here/trades",
        remote=fleet.url,
        agent="trades",
        generation=generation,
        host="here",
        search=search,
    )


@pytest.mark.parametrize("how", ["untracked", "committed", "removed again"])
def test_a_key_is_not_pushed(fleet, how):
    """Neither in a file nor in a commit, even if a later commit removes it."""
    branch = open_branch(fleet, SecretSearch())
    branch.bring(None)
    before = fleet.work()
    here = fleet.repository("here")
    if how == "untracked":
        (here.path / "settings.py").write_text(f"# settings\nTOKEN = '{TOKEN}'\n")
    else:
        here.commit("settings.py", f"# settings\nTOKEN = '{TOKEN}'\n")
    if how == "removed again":
        here.commit("settings.py", "# settings\n")
    with pytest.raises(WorkspaceError) as refused:
        branch.push()
    assert refused.value.cause == "secret"
    assert "settings.py would be pushed, but contains a github-token in line 2" in str(
        refused.value
    )
    assert TOKEN not in str(refused.value)
    assert "redact: allow:" in refused.value.hint
    assert fleet.work() == before
    with pytest.raises(WorkspaceError):
        branch.reclaim_branch()


def test_an_allowed_value_is_pushed(fleet):
    branch = open_branch(fleet, SecretSearch(allow=(TOKEN,)))
    branch.bring(None)
    fleet.repository("here").commit("example.md", f"For example: {TOKEN}\n")
    assert branch.push()


def test_files_that_the_remote_already_has_do_not_block_a_push(fleet):
    """A person pushed them, and the agent works on."""
    person = fleet.root / "person"
    (person / "fixture.txt").write_text(f"{TOKEN}\n")
    Repository(person).git("add", "-A")
    Repository(person).git("commit", "-q", "-m", "Add a fixture")
    Repository(person).git("push", "-q", fleet.url, "main")
    branch = open_branch(fleet, SecretSearch())
    branch.bring(None)
    here = fleet.repository("here")
    here.commit("new.txt", "new\n")
    (here.path / "image.bin").write_bytes(b"\0" + TOKEN.encode())
    assert branch.push()


def test_the_engines_key_files_are_not_pushed(fleet):
    """Whatever they contain."""
    branch = open_branch(fleet, SecretSearch(never=("keys/fleet.key",)))
    branch.bring(None)
    here = fleet.repository("here")
    (here.path / "keys").mkdir()
    (here.path / "keys/other.key").write_text("another one\n")
    assert branch.push()
    (here.path / "keys/fleet.key").write_text("a key\n")
    with pytest.raises(WorkspaceError) as refused:
        branch.push()
    assert "keys/fleet.key would be pushed" in str(refused.value)
