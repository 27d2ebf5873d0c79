"""One writer: the lock decides on this host, the generation between hosts.

The lock is the kernel's and goes with the process. The owner record names the host that the
agent lives on; it changes only when another host takes the agent over, and then the
generation goes up, so that whatever the old host still writes is told apart and refused.
"""

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import DocumentError, FencedError, ForeignOwnerError, NewerSchemaError
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

SCHEMA = 1


class Owner(msgspec.Struct, frozen=True):
    host: str
    gen: int
    v: int = SCHEMA


def read(folder: AgentFolder) -> Owner | None:
    data = disk.read(folder.owner)
    if data is None:
        return None
    try:
        jsontext.decode_object(data, "owner.json", schema=SCHEMA)
        return msgspec.json.decode(data, type=Owner)
    except NewerSchemaError:
        raise
    except (DocumentError, msgspec.ValidationError) as error:
        raise DocumentError(
            "owner.json",
            f"does not name an owner ({error})",
            hint=f"if no other host works on this agent, remove {folder.owner}",
        ) from error


def claim(
    folder: AgentFolder, host: str, at_least: int, *, take_over: bool
) -> tuple[Owner, Owner | None]:
    """Become or stay the owner; returns the record in force and, after a take-over, the old one.

    `at_least` is the highest generation in the log: a lost record must not bring an old one back.
    """
    known = read(folder)
    if known is not None and known.host == host and known.gen >= at_least:
        return known, None
    if known is not None and known.host != host and not take_over:
        raise ForeignOwnerError(folder.name, known.host)
    base = max(known.gen if known else 0, at_least)
    is_new_owner = known is not None and known.host != host
    owner = Owner(host, max(1, base + 1 if is_new_owner else base))
    disk.replace(folder.owner, jsontext.encode_pretty(owner, "owner.json"))
    return owner, known if is_new_owner else None


def require(folder: AgentFolder, owner: Owner) -> None:
    """Refuse to write for an owner that has been replaced meanwhile."""
    current = read(folder)
    if current is None or (current.host, current.gen) != (owner.host, owner.gen):
        raise FencedError(folder.name, owner.gen, current.gen if current else 0)
