"""Files about accounts in the user's folder, shared by the agents of all projects.

    quota/HARNESS-HASH/windows.json             the newest quota windows that a CLI reported
    quota/HARNESS-HASH/agents/AGENT-HASH.json   one agent's use of the account

The first HASH is a prefix of the SHA-256 of the CLI's configuration folder, the second of the
agent's project. Any supervisor may replace the windows, because each report contains the current
numbers. Only the agent's own supervisor writes its ledger. A damaged file counts as missing.
"""

import os
import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from rekindle.documents.account_quota import AccountQuota
from rekindle.documents.agent_ledger import AgentLedger
from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.errors import StoreError
from rekindle.formats import json_codec
from rekindle.policy.quota.account_windows import add_windows, has_changed
from rekindle.system.files import durable_files, file_status, user_folder
from rekindle.thresholds.quota_limits import QUOTA_SEEN_SECONDS

_FOLDER = "quota"
_WINDOWS = "windows.json"
_AGENTS = "agents"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_ledgers: dict[Path, tuple[object, AgentLedger | None]] = {}
"""Ledgers as last read, with their file's stamp. Supervisors read all of them every two seconds."""


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

    def note_windows(self, report: QuotaReport, now: datetime) -> bool:
        """Store a report if it is new, and return whether it has changed the windows.

        Of an unchanged report, only its time is stored, and not each time. The stored numbers stay,
        so that many small steps add up to a change.
        """
        before, at = self.read_windows(), report.at or now
        reported = [window for window in report.windows if window.is_valid(now)]
        # A time in the future is wrong, because the clock was set back.
        is_old = before.seen_at is not None and at < before.seen_at <= now
        if is_old or not reported:
            return False
        seen_at, is_changed = min(at, now), has_changed(before.windows, reported)
        if not is_changed and before.seen_at is not None:
            if abs(seen_at - before.seen_at) < timedelta(seconds=QUOTA_SEEN_SECONDS):
                return False
            reported = []
        user_folder.make_user_folder(_FOLDER, self.name)
        windows = add_windows(before.windows, reported, now)
        record = AccountQuota(self.harness, self.folder, seen_at, windows)
        durable_files.replace_file(self.path / _WINDOWS, json_codec.encode(record, _WINDOWS))
        return is_changed

    def read_ledger(self, default: AgentLedger) -> AgentLedger:
        """Return an agent's ledger for this account. `default` names the agent."""
        stored = _read_ledger(self._find_ledger(default)) or default
        return msgspec.structs.replace(stored, priority=default.priority)

    def read_ledgers(self) -> list[AgentLedger]:
        """Return the ledgers of all agents that used this account."""
        return _read_folder(self.path / _AGENTS)

    def write_ledger(self, ledger: AgentLedger) -> None:
        """Replace an agent's ledger. Only the agent's supervisor may do this."""
        path = self._find_ledger(ledger)
        user_folder.make_user_folder(_FOLDER, self.name, _AGENTS)
        durable_files.replace_file(path, json_codec.encode(ledger, path.name))

    def prune(self, oldest: datetime) -> None:
        """Remove the ledgers of agents that have not used the account since a time."""
        folder = self.path / _AGENTS
        for name in _list_names(folder):
            with suppress(OSError, StoreError):
                if (folder / name).stat().st_mtime < oldest.timestamp():
                    durable_files.remove_file(folder / name)

    def _find_ledger(self, ledger: AgentLedger) -> Path:
        mark = json_codec.hash_bytes(ledger.project.encode("utf-8", "surrogateescape"))[:16]
        return self.path / _AGENTS / f"{ledger.agent}-{mark}.json"


def list_ledgers() -> list[AgentLedger]:
    """Return the ledgers of all agents, one for each account that they used."""
    folder = user_folder.find_user_folder() / _FOLDER
    accounts = [folder / name / _AGENTS for name in _list_names(folder)]
    return [ledger for agents in accounts for ledger in _read_folder(agents)]


def _read_folder(folder: Path) -> list[AgentLedger]:
    ledgers = (_read_ledger(folder / name) for name in _list_names(folder))
    return [ledger for ledger in ledgers if ledger is not None]


def _read_ledger(path: Path) -> AgentLedger | None:
    stamp = file_status.make_file_stamp(path)
    if path not in _ledgers or _ledgers[path][0] != stamp:
        ledger = None
        with suppress(msgspec.MsgspecError, UnicodeError):
            ledger = msgspec.json.decode(durable_files.read_bytes(path) or b"", type=AgentLedger)
        _ledgers[path] = (stamp, ledger)
    return _ledgers[path][1]


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - only names are needed
    except OSError:
        return []
