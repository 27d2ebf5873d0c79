"""Spending: what the run has spent, kept outside the workspace.

The log says it as well, but an agent can rewrite its log, and a log that the operator then accepts
must not give a budget back.
"""

from contextlib import suppress

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import StoreError
from rekindle.policy.budget import Spent
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

_decoder = msgspec.json.Decoder(Spent)


def load(folder: AgentFolder) -> Spent | None:
    """Return what was kept last, or None if nothing readable was."""
    data = disk.read(folder.private.spent) if folder.private else None
    with suppress(msgspec.MsgspecError, UnicodeError):
        return _decoder.decode(data or b"")
    return None


def save(folder: AgentFolder, spent: Spent) -> None:
    """Keep it, without raising: the log has it already."""
    if folder.private is not None:
        with suppress(StoreError):
            disk.replace(folder.private.spent, jsontext.encode(spent, "spent.json"))
