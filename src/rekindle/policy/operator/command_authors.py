"""Record which user gave a command, on a fleet that several people share."""

from typing import TypeVar

import msgspec

from rekindle.documents.events import LoopAdded, LoopResolved
from rekindle.documents.events.event import Event

T = TypeVar("T", bound=Event)


def sign_command(record: T, author: str) -> T:
    """Return an operator's command with its author, if its kind has one.

    The command's own host states the author, so this is a record for honest users and no proof.
    """
    # The author of a loop is an agent. A person's loop has none.
    if "by" not in record.__struct_fields__ or isinstance(record, LoopAdded | LoopResolved):
        return record
    return msgspec.structs.replace(record, by=author)


def name_author(by: str) -> str:
    """Return the author of a command on a fleet. The commands on a single host are yours."""
    return by if "@" in by else "you"
