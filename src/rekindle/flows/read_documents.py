"""Read an agent's relay and brief, if they are valid.

An edit by a person or the agent can make a document invalid. The next write sets an invalid
document aside and reports it.
"""

from rekindle.documents import brief as briefs
from rekindle.documents import relay as relays
from rekindle.documents.brief import Brief
from rekindle.documents.relay import Relay
from rekindle.errors import DocumentError
from rekindle.stores.files import FileStore


def read_relay(store: FileStore, agent: str) -> Relay | None:
    """Return the agent's current relay, or None if it is missing or invalid."""
    data = store.document(agent, "relay")
    try:
        return relays.parse(data) if data else None
    except DocumentError:
        return None


def parse_brief(data: bytes | None) -> Brief | None:
    """Parse a stored brief. Return None if it is missing or invalid."""
    try:
        return briefs.parse(data) if data else None
    except DocumentError:
        return None
