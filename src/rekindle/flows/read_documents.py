"""Read an agent's relay and brief from the store; None if missing or invalid.

A document can be invalid because a person or the agent edited it. The next writer sets it aside and
reports it.
"""

from rekindle.documents import brief as briefs
from rekindle.documents import relay as relays
from rekindle.documents.brief import Brief
from rekindle.documents.relay import Relay
from rekindle.errors import DocumentError
from rekindle.stores.files import FileStore


def read_relay(store: FileStore, agent: str) -> Relay | None:
    """Return the agent's current relay, or None."""
    data = store.document(agent, "relay")
    try:
        return relays.parse(data) if data else None
    except DocumentError:
        return None


def parse_brief(data: bytes | None) -> Brief | None:
    """Return a brief from its stored bytes, or None."""
    try:
        return briefs.parse(data) if data else None
    except DocumentError:
        return None
