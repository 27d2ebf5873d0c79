"""Files of the bridge to phones, in the user's folder, where no sandboxed agent can read them.

    phone/settings.json    services with their tokens, paired chats, and the hash of a pairing code
    phone/state.json       questions that were sent, with their codes, and the cursors of services
    phone/bridge           lock of the running bridge

Commands and the bridge change the settings under a lock. Only the bridge changes the state.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from rekindle.documents.phone.phone_records import SCHEMA, PhoneSettings, PhoneState
from rekindle.errors import BusyError, DocumentError
from rekindle.formats import json_codec
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS
from rekindle.system.files import durable_files, file_locks, user_folder

_FOLDER = "phone"
T = TypeVar("T", PhoneSettings, PhoneState)


def find_phone_folder() -> Path:
    """Return the bridge's folder. It may not exist yet."""
    return user_folder.find_user_folder() / _FOLDER


class PhoneFiles:
    """The bridge's settings and state. All methods can be called from several threads."""

    def __init__(self) -> None:
        self._folder = find_phone_folder()
        self._lock = Lock()
        self._state: PhoneState | None = None

    def read_settings(self) -> PhoneSettings:
        return _read(self._folder / "settings.json", PhoneSettings())

    def change_settings(self, change: Callable[[PhoneSettings], PhoneSettings]) -> PhoneSettings:
        """Change the settings durably, and return the new ones."""
        user_folder.make_user_folder(_FOLDER)
        with file_locks.hold_lock(self._folder / "settings.lock", LOCK_WAIT_SECONDS) as lock:
            if lock is None:
                raise BusyError(_FOLDER, LOCK_WAIT_SECONDS)
            settings = change(self.read_settings())
            _write(self._folder / "settings.json", settings)
            return settings

    @contextmanager
    def hold_bridge(self) -> Iterator[bool]:
        """Hold the lock of the bridge. Yield False if another bridge is running."""
        user_folder.make_user_folder(_FOLDER)
        with file_locks.hold_lock(self._folder / "bridge", 0.0) as lock:
            yield lock is not None

    def is_running(self) -> bool:
        """Return whether a bridge is running."""
        return file_locks.is_locked(self._folder / "bridge")

    def read_state(self) -> PhoneState:
        with self._lock:
            return self._read_state()

    def change_state(self, change: Callable[[PhoneState], PhoneState]) -> PhoneState:
        """Change the state durably, and return the new one. Only the bridge may call this."""
        with self._lock:
            before = self._read_state()
            state = change(before)
            if state != before:
                _write(self._folder / "state.json", state)
            self._state = state
            return state

    def _read_state(self) -> PhoneState:
        return self._state or _read(self._folder / "state.json", PhoneState())


def _read(path: Path, default: T) -> T:
    data = durable_files.read_bytes(path)
    if data is None:
        return default
    json_codec.decode_object(data, path.name, schema=SCHEMA)
    try:
        return msgspec.json.decode(data, type=type(default))
    except msgspec.MsgspecError as error:
        raise DocumentError(
            path.name, str(error), hint=f"remove {path}, then run `rekindle phone setup` again"
        ) from error


def _write(path: Path, record: PhoneSettings | PhoneState) -> None:
    durable_files.replace_file(path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")
