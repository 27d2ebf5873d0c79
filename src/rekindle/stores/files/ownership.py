"""One writer: the lock decides on this host, the generation between hosts.

The lock is the kernel's and goes with the process. The owner record names the host that the
agent lives on; it changes only when another host takes the agent over, and then the
generation goes up, so that whatever the old host still writes is told apart and refused.
"""

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import (
    DocumentError,
    FencedError,
    ForeignOwnerError,
    NewerSchemaError,
    OnFleetError,
)
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

SCHEMA = 1
FLEET = "fleet:"
"""How the name of an owner begins that is a fleet, or one of its hosts."""


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
    refuse(folder.name, known, host, take_over=take_over)
    base = max(known.gen if known else 0, at_least)
    # A fleet says by its leases which of its hosts has an agent: a host that was renamed is none.
    is_new_owner = known is not None and known.host != host and not host.startswith(FLEET)
    owner = Owner(host, max(1, base + 1 if is_new_owner else base))
    disk.replace(folder.owner, jsontext.encode_pretty(owner, "owner.json"))
    return owner, known if is_new_owner else None


def give(folder: AgentFolder, host: str, at_least: int) -> None:
    """Have another be the owner, with a generation of its own; whoever calls it holds the lock."""
    known = read(folder)
    owner = Owner(host, max(known.gen if known else 0, at_least) + 1)
    disk.replace(folder.owner, jsontext.encode_pretty(owner, "owner.json"))


def refuse(agent: str, known: Owner | None, host: str, *, take_over: bool) -> None:
    """Refuse a host that is not the owner; nobody takes over from a fleet, which would go on."""
    if known is None or known.host == host or host.startswith(FLEET):
        return
    if not take_over or known.host.startswith(FLEET):
        raise foreign(agent, known.host)


def foreign(agent: str, owner: str) -> ForeignOwnerError:
    """What whoever is not the owner is told."""
    if owner.startswith(FLEET):
        return OnFleetError(agent, owner.removeprefix(FLEET))
    return ForeignOwnerError(agent, owner)


def require(folder: AgentFolder, owner: Owner) -> None:
    """Refuse to write for an owner that has been replaced meanwhile."""
    current = read(folder)
    if current is None or (current.host, current.gen) != (owner.host, owner.gen):
        raise FencedError(folder.name, owner.gen, current.gen if current else 0)
