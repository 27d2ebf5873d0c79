"""Disk errors outside of writes: reads, locks, and the name of this host."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from rekindle.errors import StoreError
from rekindle.system import host
from rekindle.system.files import durable_files, file_locks


def refusing(number: int):
    def refuse(*_args, **_options):
        raise OSError(number, os.strerror(number))

    return refuse


def test_a_host_whose_id_cannot_be_read_now_is_not_another_host(tmp_path, monkeypatch):
    """Another name would be another host: its agents would be refused, or taken over."""
    monkeypatch.setattr(Path, "read_text", refusing(errno.EMFILE))
    with pytest.raises(StoreError, match="machine-id"):
        host.identify_host()


def test_a_host_without_an_id_uses_its_name(tmp_path, monkeypatch):
    """Without a machine id, the hostname is used."""
    monkeypatch.setattr(host, "_MACHINE_IDS", (tmp_path / "none",))
    assert host.identify_host() == os.uname().nodename


def test_a_lock_that_cannot_be_looked_at_is_an_error_and_no_endless_wait(tmp_path, monkeypatch):
    """A disk that does not answer is not a lock that was removed."""
    lock = file_locks.FileLock(tmp_path / "lock")
    monkeypatch.setattr(Path, "lstat", refusing(errno.EIO))
    with pytest.raises(StoreError, match="lock"):
        lock.is_still_at_path()
    lock.close()


def test_a_file_system_without_locks_is_named_with_what_to_do(tmp_path, monkeypatch):
    """The error carries the path and a hint."""
    monkeypatch.setattr(fcntl, "flock", refusing(errno.ENOLCK))
    with pytest.raises(StoreError) as refused, file_locks.hold_lock(tmp_path / "lock", 0):
        pass
    assert refused.value.errno == errno.ENOLCK
    assert "rekindle torture" in refused.value.hint


def test_a_failed_check_is_not_a_no(tmp_path, monkeypatch):
    """Only a missing file is reported as missing."""
    assert not durable_files.path_exists(tmp_path / "none")
    assert not durable_files.path_exists(Path(__file__) / "below a file")
    monkeypatch.setattr(Path, "lstat", refusing(errno.EIO))
    with pytest.raises(StoreError):
        durable_files.path_exists(tmp_path)
