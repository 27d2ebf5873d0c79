"""A host does not push to a repository that one of its agents could have made."""

import pytest

from rekindle.errors import EngineError
from rekindle.fleet.hosts.local_remotes import check_remote
from rekindle.policy.sandbox.profile import SandboxFloor

FLOOR = SandboxFloor(1 << 30, 64)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with the host's agents, its user's home and other repositories."""
    for name in ("hosts", "home", "srv"):
        (tmp_path / name).mkdir()
    (tmp_path / "srv/link").symlink_to(tmp_path / "hosts")
    (tmp_path / "hosts/link").symlink_to(tmp_path / "srv")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.chdir(tmp_path / "srv")
    return tmp_path


@pytest.mark.parametrize(
    "remote",
    [
        "{place}/hosts/a/work/evil.git",
        "/{place}/hosts/a/work/evil.git",
        "file://{place}/hosts/a/work/evil.git",
        "file:///{place}/hosts/a/work/evil.git",
        "FILE://{place}/hosts/a/work/evil.git",
        "file://{place}/h%6fsts/a/work/evil.git",
        "file://{decoded}%2fhosts/a",
        "file://{bare}/hosts/a/work/evil.git",
        "{place}/srv/../hosts/a",
        "{place}/srv/link/a",
        "{place}/hosts/link/a",
        "{place}/hosts/a:b",
        "{place}/home/.claude/projects/evil.git",
        "{place}/claude/projects/evil.git",
        "/proc/7/cwd/evil.git",
        "evil.git",
        "./a:b",
        "~/evil.git",
        "file://{place}/srv/a%00b",
    ],
)
def test_a_repository_that_an_agent_could_have_made_is_refused(place, remote):
    bare = str(place).removeprefix("/")
    decoded = str(place).replace("/", "%2f")
    remote = remote.format(place=place, bare=bare, decoded=decoded)
    with pytest.raises(EngineError, match="its git remote is in") as refused:
        check_remote(remote, place / "hosts", FLOOR)
    assert "/srv/git" in refused.value.hint
    check_remote(remote, place / "hosts", None)


@pytest.mark.parametrize(
    "remote",
    [
        "{place}/srv/shop.git",
        "file://{place}/srv/h%6fsts",
        "{place}/hosts2/shop.git",
        "https://example.org{place}/hosts/shop.git",
        "ssh://git@example.org/hosts/shop.git",
        "git@example.org:shop.git",
        "example.org:{place}/hosts/a",
    ],
)
def test_a_server_or_another_folder_is_accepted(place, remote):
    try:
        check_remote(remote.format(place=place), place / "hosts", FLOOR)
    except EngineError as refused:
        pytest.fail(str(refused))
