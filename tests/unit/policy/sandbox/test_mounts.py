"""Which files a sandbox shows, and in which order they cover each other."""

import msgspec
import pytest

from rekindle.policy.sandbox.mounts import (
    Mount,
    SandboxPaths,
    StatePaths,
    drop_absent,
    is_inside,
    make_mounts,
)
from rekindle.policy.sandbox.profile import SandboxProfile

PATHS = SandboxPaths(
    folder="/home/user/work",
    rekindle="/home/user/work/.rekindle",
    own="/home/user/work/.rekindle/agents/a",
    run="/home/user/work/.rekindle/agents/a/run",
    draft="/home/user/work/.rekindle/drafts/a",
    user="/home/user/.local/state/rekindle",
    hooks="/home/user/.local/state/rekindle/programs",
    scratch="/home/user/.local/state/rekindle/projects/p/agents/a/launch",
    marks="/home/user/.local/state/rekindle/projects/p/agents/a/marks",
    manifest="/home/user/work/rekindle.yaml",
    system=("/usr", "/etc"),
    runtime=("/home/user/venv", "/usr"),
    programs=("/home/user/bin", "/home/user/bin/claude", "/home/user/work/.venv/bin", "/usr/bin"),
    protected=("/home/user/work/.git", "/home/user/work/.mcp.json", "/elsewhere/.mcp.json"),
    neighbours=("/home/user/work/b", "/home/user/other"),
)


NOTHING = SandboxProfile()


def find(path, profile=NOTHING, paths=PATHS):
    """Return how a path finally appears: by the last mount at or above it."""
    last = None
    for mount in make_mounts(paths, profile):
        if mount.kind == "close":
            last = "closed" if last == ("mask", mount.path) else last
        elif is_inside(path, mount.path):
            last = (mount.kind, mount.path)
    return last if last == "closed" or last is None else last[0]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/bin/git", "read"),
        ("/tmp/x", "mask"),  # noqa: S108 - a private one
        ("/home/user/.ssh/id", None),
        ("/home/user/other/x", None),
        ("/home/user/venv/bin/python", "read"),
        ("/home/user/bin/claude", "read"),
        ("/home/user/work/main.py", "write"),
        ("/home/user/work/.venv/bin/x", "write"),
        ("/home/user/work/rekindle.yaml", "read"),
        ("/home/user/work/.mcp.json", "read"),
        ("/home/user/work/b/x", "read"),
        ("/home/user/work/.git/objects/x", "write"),
        ("/home/user/work/.git/config", "read"),
        ("/home/user/work/.git/hooks/post-checkout", "read"),
        ("/home/user/work/.git/modules/x/config", "read"),
        ("/home/user/work/.rekindle/agents/b/x", "closed"),
        ("/home/user/work/.rekindle/agents/a/ops.jsonl", "read"),
        ("/home/user/work/.rekindle/agents/a/run/inbox/x", "write"),
        ("/home/user/work/.rekindle/drafts/a/relay.md", "write"),
        ("/home/user/.local/state/rekindle/projects/p/agents/a/inbox/x", "closed"),
        ("/home/user/.local/state/rekindle/programs/hook.pyc", "read"),
        ("/home/user/.local/state/rekindle/projects/p/agents/a/launch/hooks.json", "read"),
        ("/home/user/.local/state/rekindle/projects/p/agents/a/marks/braked-1", "write"),
    ],
)
def test_each_file_appears_as_it_should(path, kind):
    assert find(path) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/user/.ssh/id", "write"),
        ("/home/user/.local/state/rekindle/projects/p/agents/a/inbox/x", "closed"),
        ("/home/user/work/.rekindle/agents/b/x", "closed"),
        ("/home/user/work/rekindle.yaml", "read"),
        ("/home/user/.git/config", "read"),
        ("/home/user/venv/bin/python", "read"),
    ],
)
def test_an_addition_uncovers_neither_the_operators_files_nor_programs(path, kind):
    assert find(path, SandboxProfile(write=("/home/user",))) == kind


def test_a_deeper_addition_counts_whatever_the_order():
    profile = SandboxProfile(write=("/data/out",), read=("/data", "/data/out/kept"))
    assert find("/data/x", profile) == "read"
    assert find("/data/out/x", profile) == "write"
    assert find("/data/out/kept/x", profile) == "read"


def test_a_repository_folder_that_is_added_keeps_its_settings_read_only():
    profile = SandboxProfile(write=("/home/user/main/.git",))
    assert find("/home/user/main/.git/objects/x", profile) == "write"
    assert find("/home/user/main/.git/config", profile) == "read"


def test_a_write_beside_an_agents_folder_fails():
    paths = msgspec.structs.replace(PATHS, folder="/home/user/work/a")
    mounts = make_mounts(paths, SandboxProfile())
    assert mounts.index(Mount("mask", "/home/user/work")) < mounts.index(
        Mount("write", "/home/user/work/a")
    )
    assert mounts[-2:] == [Mount("close", "/home/user/work"), Mount("close", "/")]


@pytest.mark.parametrize(("is_closed", "beside"), [(True, "read"), (False, "write")])
def test_of_its_own_folder_a_cli_writes_only_the_state(is_closed, beside):
    home = "/home/user/.claude"
    state = StatePaths(home, is_closed, (f"{home}/projects",), (f"{home}/settings.json",))
    paths = msgspec.structs.replace(PATHS, state=state)
    assert find(f"{home}/projects/x", paths=paths) == "write"
    assert find(f"{home}/settings.json", paths=paths) == "read"
    assert find(f"{home}/new.json", paths=paths) == beside


def test_an_agents_own_relay_is_writable():
    paths = msgspec.structs.replace(
        PATHS, folder="/home/user/work/a", relay="/home/user/work/memories/consensus.md"
    )
    assert find("/home/user/work/memories/consensus.md", paths=paths) == "write"


def test_an_optional_mount_needs_its_path():
    mounts = [Mount("read", "/a"), Mount("read", "/b", is_optional=True)]
    assert drop_absent(mounts, []) == mounts[:1]
    assert drop_absent(mounts, ["/b"]) == mounts


def test_a_secret_is_hidden_only_where_the_sandbox_shows_it():
    secrets = ("/usr/key", "/home/user/key")
    found = make_mounts(msgspec.structs.replace(PATHS, secrets=secrets), SandboxProfile())
    hidden = [mount for mount in found if mount.kind == "hide"]
    assert hidden == [Mount("hide", "/usr/key")]
    # Later mounts must not show it again.
    assert {mount.kind for mount in found[found.index(hidden[0]) + 1 :]} == {"close"}
