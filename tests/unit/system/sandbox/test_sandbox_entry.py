"""A sandbox that shows another file than it should does not start its program."""

import subprocess
import sys
from pathlib import Path

import pytest

import prerequisites
from rekindle.policy.sandbox.mount_check import describe_mounts
from rekindle.system.sandbox import host_paths, probe, sandbox_entry


@pytest.fixture
def enclose(tmp_path):
    """Run `echo ran` in a sandbox whose folder `settings` shows the folder `source`."""
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    for name in ("work/settings", "work/other", "secret dir"):
        (tmp_path / name).mkdir(parents=True)
    work = str(tmp_path / "work")

    def run(source, identities=None, mounts=None):
        shown = f"{work}/settings"
        real = host_paths.identify_real((work, shown)) if identities is None else identities
        mounts = host_paths.read_mounts() if mounts is None else mounts
        bubblewrap = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/"]
        bubblewrap += ["--proc", "/proc", "--bind", work, work]
        bubblewrap += ["--ro-bind", str(tmp_path / source), shown] if source else []
        entry = [sys.executable, "-I", "-S", sandbox_entry.__file__, describe_mounts(real, mounts)]
        words = [*bubblewrap, "--", *entry, "", "", "0", "echo", "ran"]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    return run


def test_a_program_starts_if_every_mount_shows_its_own_path(enclose):
    ended = enclose("work/settings")
    assert (ended.returncode, ended.stdout) == (0, "ran\n"), ended.stderr


@pytest.mark.parametrize("source", ["secret dir", "work/other", ""])
def test_a_program_does_not_start_if_a_mount_shows_another_path(enclose, source):
    """As if a process had replaced the folder with a link while the sandbox was created."""
    ended = enclose(source)
    assert (ended.returncode, ended.stdout) == (77, "")
    assert "settings was replaced" in ended.stderr


def test_the_inode_counts_if_the_place_is_not_reported(enclose):
    """Some file systems report another place for a mount than for the files below it."""
    assert enclose("work/settings", mounts="").stdout == "ran\n"
    assert enclose("secret dir", mounts="").returncode == 77


def test_a_file_that_is_replaced_after_it_was_mounted_is_accepted(tmp_path, monkeypatch):
    """Other sessions of a CLI replace its settings at any time."""
    shown = f"22 1 8:1 {tmp_path}/a//deleted {tmp_path}/a rw - ext4 x rw\n"
    (tmp_path / "mountinfo").write_text(shown)
    real = open
    monkeypatch.setattr(
        "builtins.open", lambda path, **more: real(tmp_path / Path(path).name, **more)
    )
    assert sandbox_entry.find_wrong_mount(f"8:1 {tmp_path}/a {tmp_path}/a 1:1") == ""
    assert sandbox_entry.find_wrong_mount(f"8:1 {tmp_path}/b {tmp_path}/a 1:1") == f"{tmp_path}/a"
