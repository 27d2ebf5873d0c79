"""Spending: what the run has spent, kept outside the workspace.

The log says it as well, but an agent can rewrite its log, and a log that the operator then accepts
must not give a budget back.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import StoreError
from rekindle.policy.budget import Spent
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

_decoder = msgspec.json.Decoder(Spent)


def load(folder: AgentFolder) -> Spent | None:
    """Return what was kept last, or None if nothing readable was."""
    return _load(folder.private.spent) if folder.private else None


def load_claimed(folder: AgentFolder) -> Spent | None:
    """Return what an accepted log must not fall below, or None if none is being accepted."""
    return _load(folder.private.accepting) if folder.private else None


def claim(folder: AgentFolder, spent: Spent) -> None:
    """Keep what the run has spent while a log is accepted that may say less."""
    if folder.private is not None:
        disk.replace(folder.private.accepting, jsontext.encode(spent, "accepting.json"))


def drop_claim(folder: AgentFolder) -> None:
    """Forget it, durably: in a later run it would be spending of an earlier one."""
    if folder.private is not None:
        disk.remove(folder.private.accepting)
        disk.sync_folder(folder.private.path)


def _load(path: Path) -> Spent | None:
    data = disk.read(path)
    with suppress(msgspec.MsgspecError, UnicodeError):
        return _decoder.decode(data or b"")
    return None


def save(folder: AgentFolder, spent: Spent) -> None:
    """Keep it, without raising: the log has it already."""
    if folder.private is not None:
        with suppress(StoreError):
            disk.replace(folder.private.spent, jsontext.encode(spent, "spent.json"))
