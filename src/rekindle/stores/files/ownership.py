"""Make sure that only one process writes to an agent.

On a single host, a lock ensures this; the kernel releases it when the process exits. Across hosts,
the owner record names the agent's host. When another host takes over, the generation number
increases, and later writes by the previous host are refused.
"""

import msgspec

from rekindle.errors import (
    DocumentError,
    FencedError,
    ForeignOwnerError,
    NewerSchemaError,
    OnFleetError,
)
from rekindle.formats import json_codec
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system.files import durable_files

SCHEMA = 1
FLEET_PREFIX = "fleet:"
"""Prefix of an owner name that stands for a fleet or one of its hosts."""


class AgentOwner(msgspec.Struct, frozen=True):
    host: str
    gen: int
    v: int = SCHEMA


def read_owner(folder: AgentFolder) -> AgentOwner | None:
    data = durable_files.read_bytes(folder.owner)
    if data is None:
        return None
    try:
        json_codec.decode_object(data, "owner.json", schema=SCHEMA)
        return msgspec.json.decode(data, type=AgentOwner)
    except NewerSchemaError:
        raise
    except (DocumentError, msgspec.ValidationError) as error:
        raise DocumentError(
            "owner.json",
            f"does not name an owner ({error})",
            hint=f"if no other host works on this agent, remove {folder.owner}",
        ) from error


def claim_ownership(
    folder: AgentFolder, host: str, at_least: int, *, take_over: bool
) -> tuple[AgentOwner, AgentOwner | None]:
    """Become or stay the owner. Return the owner and, after a takeover, the previous owner.

    `at_least` is the highest generation in the log. The generation must not fall below it if the
    owner record was lost.
    """
    current = read_owner(folder)
    if current is not None and current.host == host and current.gen >= at_least:
        return current, None
    refuse_other_host(folder.name, current, host, take_over=take_over)
    base = max(current.gen if current else 0, at_least)
    # In a fleet, leases decide which host runs an agent, so a new host name is not a takeover.
    is_new_owner = (
        current is not None and current.host != host and not host.startswith(FLEET_PREFIX)
    )
    owner = AgentOwner(host, max(1, base + 1 if is_new_owner else base))
    durable_files.replace_file(folder.owner, json_codec.encode_pretty(owner, "owner.json"))
    return owner, current if is_new_owner else None


def transfer_ownership(folder: AgentFolder, host: str, at_least: int) -> None:
    """Make another host the owner, with a new generation. The caller holds the lock."""
    current = read_owner(folder)
    owner = AgentOwner(host, max(current.gen if current else 0, at_least) + 1)
    durable_files.replace_file(folder.owner, json_codec.encode_pretty(owner, "owner.json"))


def refuse_other_host(agent: str, owner: AgentOwner | None, host: str, *, take_over: bool) -> None:
    """Raise an error if this host is not the owner.

    A fleet's agent cannot be taken over, because the fleet would keep using it.
    """
    if owner is None or owner.host == host or host.startswith(FLEET_PREFIX):
        return
    if not take_over or owner.host.startswith(FLEET_PREFIX):
        raise make_foreign_error(agent, owner.host)


def make_foreign_error(agent: str, owner: str) -> ForeignOwnerError:
    """Return the error for a host that is not the owner."""
    if owner.startswith(FLEET_PREFIX):
        return OnFleetError(agent, owner.removeprefix(FLEET_PREFIX))
    return ForeignOwnerError(agent, owner)


def require_owner(folder: AgentFolder, owner: AgentOwner) -> None:
    """Raise FencedError if another owner has taken over."""
    current = read_owner(folder)
    if current is None or (current.host, current.gen) != (owner.host, owner.gen):
        raise FencedError(folder.name, owner.gen, current.gen if current else 0)
