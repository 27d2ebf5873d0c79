"""The records of a project's schedules, outside its folder, where no agent can write.

schedules/lock                    held while the daemon checks the schedules
schedules/agents/NAME.json        runs of an agent that were started, skipped or missed
schedules/pipelines/NAME.json     the same for a pipeline
schedules/pipelines/NAME.accepted the settings of a pipeline that the operator accepted
"""

import os
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.errors import StoreError, translate_os_errors
from rekindle.policy.schedules.schedule_record import ScheduleRecord
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.system.files import durable_files, file_locks

ScheduleKind = Literal["agents", "pipelines"]


class ScheduleFiles(msgspec.Struct, frozen=True):
    private: PrivateProject

    def hold(self) -> AbstractContextManager[file_locks.FileLock | None]:
        """Hold the lock, or yield None if another daemon is checking the schedules."""
        self.private.make()
        durable_files.make_folder(self.private.schedules)
        return file_locks.hold_lock(self._lock, 0.0)

    def note_check(self, now: datetime) -> None:
        """Record that a daemon has checked the schedules. Only the lock's holder may call this."""
        path = self._lock
        with translate_os_errors(path):
            os.utime(path, (now.timestamp(), now.timestamp()))

    def read_last_check(self) -> datetime | None:
        """Return the time when a daemon last checked the schedules, or None."""
        with suppress(OSError):
            return datetime.fromtimestamp(self._lock.stat().st_mtime, UTC)
        return None

    @property
    def _lock(self) -> Path:
        return self.private.schedules / "lock"

    def read(self, kind: ScheduleKind, name: str) -> ScheduleRecord | None:
        """Return a schedule's record, or None if there is none yet.

        Raises:
            StoreError: The record is damaged. Without it, a run could be started twice.
        """
        path = self._find_record(kind, name)
        data = durable_files.read_bytes(path)
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=ScheduleRecord)
        except msgspec.MsgspecError as error:
            raise StoreError(
                str(path),
                "the record of this schedule is damaged",
                hint="restore it from a backup, or remove it: one run then starts for all due "
                "times since you accepted the schedule",
            ) from error

    def write(self, kind: ScheduleKind, name: str, record: ScheduleRecord) -> None:
        """Replace the record durably."""
        self._make_folder(kind)
        durable_files.replace_file(self._find_record(kind, name), msgspec.json.encode(record))

    def remove(self, kind: ScheduleKind, name: str) -> None:
        durable_files.remove_file(self._find_record(kind, name))

    def list_names(self, kind: ScheduleKind) -> list[str]:
        """Return the agents or pipelines that have a record."""
        folder = self.private.schedules / kind
        if not folder.is_dir():
            return []
        names = sorted(durable_files.list_entries(folder))
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]

    def _make_folder(self, kind: ScheduleKind) -> None:
        self.private.make()
        durable_files.make_folder(self.private.schedules)
        durable_files.make_folder(self.private.schedules / kind)

    def _find_record(self, kind: ScheduleKind, name: str) -> Path:
        return self.private.schedules / kind / f"{name}.json"
