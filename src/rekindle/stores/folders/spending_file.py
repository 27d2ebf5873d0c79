"""Store the run's spending outside the workspace.

The spending is also in the log, but an agent can rewrite its log. Accepting such a log must not
restore a budget that the agent has already spent.
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
    """Return the saved spending, or None if there is none."""
    return _load_spending(folder.private.spent) if folder.private else None


def load_claimed(folder: AgentFolder) -> RunSpending | None:
    """Return the spending that an accepted log must show, or None."""
    return _load_spending(folder.private.accepting) if folder.private else None


def claim(folder: AgentFolder, spent: RunSpending) -> None:
    """Save the run's spending before accepting a log that may show less."""
    if folder.private is not None:
        durable_files.replace_file(
            folder.private.accepting, json_codec.encode(spent, "accepting.json")
        )


def drop_claim(folder: AgentFolder) -> None:
    """Remove the saved spending, so that a later run is not charged for it."""
    if folder.private is not None:
        durable_files.remove_file(folder.private.accepting)
        durable_files.sync_folder(folder.private.path)


def _load_spending(path: Path) -> RunSpending | None:
    data = durable_files.read_bytes(path)
    with suppress(msgspec.MsgspecError, UnicodeError):
        return _decoder.decode(data or b"")
    return None


def save_spending(folder: AgentFolder, spent: RunSpending) -> None:
    """Save the spending. Errors are ignored, because the log has it too."""
    if folder.private is not None:
        with suppress(StoreError):
            durable_files.replace_file(folder.private.spent, json_codec.encode(spent, "spent.json"))
