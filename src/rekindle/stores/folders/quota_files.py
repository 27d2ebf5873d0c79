"""Files about accounts in the user's folder, shared by the agents of all projects.

    quota/HARNESS-HASH/windows.json    the newest quota windows that a CLI reported

HASH is a prefix of the SHA-256 of the CLI's configuration folder. Any supervisor may replace the
file, because each report contains the current numbers. A damaged file counts as missing.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents.account_quota import AccountQuota
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.formats import json_codec
from rekindle.policy.quota.account_windows import add_windows, has_changed
from rekindle.system.files import durable_files, user_folder

_FOLDER = "quota"
_WINDOWS = "windows.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class AccountFiles:
    """The files of one account: a CLI with one of its configuration folders."""

    def __init__(self, harness: str, folder: str) -> None:
        self.harness, self.folder = harness, folder
        mark = json_codec.hash_bytes(folder.encode("utf-8", "surrogateescape"))[:16]
        self.name = f"{_UNSAFE.sub('_', harness)}-{mark}"

    @property
    def path(self) -> Path:
        """Return the folder for the account's files. It may not exist yet."""
        return user_folder.find_user_folder() / _FOLDER / self.name

    def read_windows(self) -> AccountQuota:
        """Return the newest numbers. All fields are empty if the CLI has not reported any."""
        data = durable_files.read_bytes(self.path / _WINDOWS)
        with suppress(msgspec.MsgspecError, UnicodeError):
            return msgspec.json.decode(data or b"", type=AccountQuota)
        return AccountQuota(self.harness, self.folder)

    def note_windows(self, reported: Sequence[QuotaWindow], now: datetime) -> bool:
        """Store reported windows if they have changed, and return whether they have."""
        before = self.read_windows()
        if not has_changed(before.windows, reported):
            return False
        user_folder.make_user_folder(_FOLDER, self.name)
        windows = add_windows(before.windows, reported, now)
        record = AccountQuota(self.harness, self.folder, now, windows)
        durable_files.replace_file(self.path / _WINDOWS, json_codec.encode(record, _WINDOWS))
        return True
