"""Adopt another agent loop's documents as if a person had written them.

The state is written first, then the brief, the relay, and an event that records the adoption. After
a crash, running the command again repeats the writes without losing anything. Each source is
adopted only once, because a second adoption would undo what the agent has done since the first.
"""

from datetime import datetime

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import events, state
from rekindle.documents import relay as relays
from rekindle.documents.events import AnyEvent
from rekindle.documents.relay import Relay
from rekindle.formats import json_codec
from rekindle.formats.counts import render_count
from rekindle.policy.projection import state_document
from rekindle.policy.relay import trim
from rekindle.policy.setup import adoption
from rekindle.policy.setup.adoption import AdoptionPlan
from rekindle.stores.files import FileStore
from rekindle.stores.files.writer import Writer
from rekindle.stores.foreign_documents import STATE, FoundDocuments

BY_PERSON = "person"


class AdoptionResult(msgspec.Struct, frozen=True):
    took: tuple[str, ...] = ()
    trimmed: str = ""
    """Archive path of the text trimmed from the relay; empty if nothing was trimmed."""
    over_cap: bool = False
    is_known: bool = False
    """Whether this source was adopted before."""


def adopt_documents(
    store: FileStore,
    agent: str,
    documents: FoundDocuments,
    plan: AdoptionPlan,
    *,
    cap: int,
    take_over: bool = False,
) -> AdoptionResult:
    with store.writer(agent, take_over=take_over) as writer:
        writer.fold()
        if _is_known(store, agent, documents.sha256):
            return AdoptionResult(is_known=True)
        took = _adopt_state(store, writer, documents, plan)
        if plan.brief is not None:
            before = writer.projection.documents.get("brief")
            data = store.redaction.text(briefs.render(plan.brief)).encode()
            if before is None or before.sha256 != json_codec.hash_bytes(data):
                writer.commit_brief(plan.brief, by=BY_PERSON)
            took.append(f"the brief of {plan.brief.day.isoformat()}")
        trimmed, over_cap = "", False
        if plan.relay is not None:
            committed = writer.projection.documents.get("relay")
            if committed is None or committed.sha256 != _hash_committed(store, plan.relay, cap):
                committed = writer.commit_relay(plan.relay, by=BY_PERSON)
            trimmed, over_cap = committed.trimmed, committed.over_cap
            took.append(
                f"the relay: ~{render_count(committed.tokens, 'token')}, next: {committed.headline}"
            )
        writer.append(
            events.SourceAdopted(
                ts=writer.now(), source=str(documents.path), sha256=documents.sha256
            )
        )
        writer.project()
    return AdoptionResult(tuple(took), trimmed, over_cap)


def _is_known(store: FileStore, agent: str, sha256: str) -> bool:
    return any(
        isinstance(event, events.SourceAdopted) and event.sha256 == sha256
        for event in store.newest_events(agent)
    )


def _hash_committed(store: FileStore, relay: Relay, cap: int) -> str:
    """Return the hash that the relay will have after it is committed."""
    redacted = relays.parse(store.redaction.text(relays.render(relay)))
    return json_codec.hash_bytes(relays.render(trim.trim_relay(redacted, cap).relay).encode())


def _adopt_state(
    store: FileStore, writer: Writer, documents: FoundDocuments, plan: AdoptionPlan
) -> list[str]:
    if plan.state is None and not plan.closings:
        return []
    now = writer.now()
    edited = state.State(agent="")
    if plan.state is not None:
        # The projection holds redacted data, so redact before comparing.
        data = documents.parts[STATE].removeprefix(b"\xef\xbb\xbf")
        edited = state.parse(store.redaction.json(data))
    closings = {closing.id: closing for closing in plan.closings}
    still_open = adoption.select_open_loops(edited, closings)
    past, ours = adoption.collect_resolutions(edited, closings, writer.projection.loops, now)
    edited = msgspec.structs.replace(
        edited,
        open_loops=still_open,
        resolved=ours,
        last_active=_clamp_time(edited.last_active, now),
    )
    writer.append(*past)
    adopted: AnyEvent | None = state_document.adopt_state(writer.projection, edited, now)
    if adopted is not None:
        writer.append(adopted)
    counts = {
        "open loop": len(still_open),
        "resolved one": len(past) + len(ours),
        "number": len(edited.numbers),
        "other field": len(edited.extra),
    }
    summary = [render_count(n, what) for what, n in counts.items() if n]
    return [f"the state: {', '.join(summary)}"] if summary else []


def _clamp_time(when: datetime | None, now: datetime) -> datetime | None:
    """Return the time, or `now` if the time is in the future."""
    return min(when, now) if when else None
