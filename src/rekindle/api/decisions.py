"""Read an agent's decisions."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rekindle.documents import relay as relays
from rekindle.documents.events import CycleStarted, RelayCommitted
from rekindle.errors import DocumentError
from rekindle.policy.relay import decision_ledger as policy
from rekindle.policy.relay.decision_ledger import (
    LedgerDecision,
    LedgerEntry,
    LedgerRevision,
    RelayPosition,
)
from rekindle.stores.files import FileStore

if TYPE_CHECKING:
    from rekindle.api.home import Home


class AgentDecisions:
    """An agent's decisions."""

    def __init__(self, home: "Home", agent: str) -> None:
        self._home, self._agent = home, agent

    def list(self) -> Sequence[LedgerEntry]:
        """Return the decisions in the current relay, without reading the relay's history."""
        store = self._home.store
        data = store.document(self._agent, "relay") if store.exists(self._agent) else None
        if data is None:
            return []
        view = store.read(self._agent)
        current = view.committed.documents.get("relay")
        position = RelayPosition(current.seq, current.ts, view.committed.cycle) if current else None
        return [
            LedgerEntry(decision, None, position)
            for decision in policy.read_decisions(relays.parse(data))
        ]

    def history(self, words: str = "") -> Sequence[LedgerEntry]:
        """Return all decisions that contain these words, including superseded and dropped ones."""
        files = self._home.require_files("decisions --all")
        if not files.exists(self._agent):
            return ()
        ledger = policy.build_ledger(_read_revisions(files, self._agent))
        return policy.search_ledger(ledger, words)


def _read_revisions(store: FileStore, name: str) -> Iterator[LedgerRevision]:
    """Yield each committed relay, then the relay file, which may contain later edits."""
    cycle = 0
    position = None
    for entry in store.entries_since(name, 0):
        event = entry.event
        if isinstance(event, CycleStarted):
            cycle = max(cycle, event.cycle)
        elif isinstance(event, RelayCommitted):
            data = store.committed_relay(name, event)
            if data is None:
                continue  # The archived text is lost, but its decisions may still be in effect.
            position = RelayPosition(event.seq, event.ts, cycle)
            relay_decisions = _read_decisions(data)
            trimmed = _read_decisions(
                store.archived(name, event.trimmed) if event.trimmed else None
            )
            yield LedgerRevision(position, relay_decisions, trimmed)
    now = _read_decisions(store.document(name, "relay"))
    if position is not None:
        yield LedgerRevision(position, now)


def _read_decisions(data: bytes | None) -> tuple[LedgerDecision, ...]:
    """Return the decisions in a relay, or an empty list if its text is missing or damaged."""
    try:
        return () if data is None else policy.read_decisions(relays.parse(data))
    except DocumentError:
        return ()
