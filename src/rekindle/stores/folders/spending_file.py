"""The run's spending, stored outside the workspace.

The log records the spending as well, but an agent can rewrite its log, and accepting a rewritten
log must not restore a budget that was already spent.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.errors import StoreError
from rekindle.formats import json_codec
from rekindle.policy.supervision.budget import RunSpending
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system.files import durable_files

_decoder = msgspec.json.Decoder(RunSpending)


def load_spending(folder: AgentFolder) -> RunSpending | None:
    """Return the last saved spending, or None if there is no readable record."""
    return _load(folder.private.spent) if folder.private else None


def load_claimed(folder: AgentFolder) -> RunSpending | None:
    """Return the spending that an accepted log must reach, or None if no log is being accepted."""
    return _load(folder.private.accepting) if folder.private else None


def claim(folder: AgentFolder, spent: RunSpending) -> None:
    """Save the run's spending before accepting a log that may show less spending."""
    if folder.private is not None:
        durable_files.replace_file(
            folder.private.accepting, json_codec.encode(spent, "accepting.json")
        )


def drop_claim(folder: AgentFolder) -> None:
    """Remove the claim durably, so that a later run is not charged for this run's spending."""
    if folder.private is not None:
        durable_files.remove_file(folder.private.accepting)
        durable_files.sync_folder(folder.private.path)


def _load(path: Path) -> RunSpending | None:
    data = durable_files.read_bytes(path)
    with suppress(msgspec.MsgspecError, UnicodeError):
        return _decoder.decode(data or b"")
    return None


def save_spending(folder: AgentFolder, spent: RunSpending) -> None:
    """Save the spending; ignore errors, because the log already records it."""
    if folder.private is not None:
        with suppress(StoreError):
            durable_files.replace_file(folder.private.spent, json_codec.encode(spent, "spent.json"))
