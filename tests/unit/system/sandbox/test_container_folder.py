"""The folder of a container, beside other supervisors that sweep."""

import fcntl
from pathlib import Path

import pytest

from rekindle.system.sandbox import container_folder, container_group
from rekindle.system.sandbox.container_folder import ContainerFolder


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A plain folder that stands for the control groups of the host."""
    monkeypatch.setattr(container_group, "_MOUNT", tmp_path / "groups")
    return tmp_path / "groups" / container_group.PARENT


def test_a_folder_that_another_supervisor_swept_is_made_again(tmp_path, groups, monkeypatch):
    swept = []

    def sweep_before_lock(number, operation):
        if operation == fcntl.LOCK_SH and not swept:
            swept.append(Path(f"/proc/self/fd/{number}").readlink())
            swept[0].rmdir()

    monkeypatch.setattr(container_folder.fcntl, "flock", sweep_before_lock)
    folder = ContainerFolder(tmp_path / "containers", "/usr/bin/true")
    assert swept == [folder.root.parent]
    assert folder.root.is_dir()
    folder.remove()
    assert list((tmp_path / "containers").iterdir()) == []


def test_a_folder_stays_until_its_group_is_empty(tmp_path, groups):
    parent = tmp_path / "containers"
    left = ContainerFolder(parent, "/usr/bin/true")
    process = groups / left.name / "process"
    process.mkdir(parents=True)
    left.remove()
    assert [one.name for one in parent.iterdir()] == [left.name]
    process.rmdir()
    ContainerFolder(parent, "/usr/bin/true").remove()
    assert list(parent.iterdir()) == []
    assert list(groups.iterdir()) == []
