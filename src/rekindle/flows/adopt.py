"""Take over what another loop has left behind, as a person's own word.

In an order in which a crash duplicates rather than loses: state, brief, relay, and last the note
that it was done. The same source is taken over once: what the agent has done since would be undone.
"""

from datetime import datetime

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import event as events
from rekindle.documents import jsontext, state
from rekindle.documents import relay as relays
from rekindle.documents.event import AnyEvent
from rekindle.documents.relay import Relay
from rekindle.policy import adoption, fold, trim
from rekindle.policy.adoption import Plan
from rekindle.stores.files import FileStore
from rekindle.stores.files.writer import Writer
from rekindle.stores.found import STATE, Found

PERSON = "person"


class Adopted(msgspec.Struct, frozen=True):
    took: tuple[str, ...] = ()
    trimmed: str = ""
    """Where the archive keeps what was over the cap."""
    over_cap: bool = False
    is_known: bool = False
    """It had been taken over before."""


def adopt(
    store: FileStore, agent: str, found: Found, plan: Plan, *, cap: int, take_over: bool = False
) -> Adopted:
    with store.writer(agent, take_over=take_over) as writer:
        writer.fold()
        if _is_known(store, agent, found.sha256):
            return Adopted(is_known=True)
        took = _state(store, writer, found, plan)
        if plan.brief is not None:
            before = writer.projection.documents.get("brief")
            data = store.redaction.text(briefs.render(plan.brief)).encode()
            if before is None or before.sha256 != jsontext.fingerprint(data):
                writer.commit_brief(plan.brief, by=PERSON)
            took.append(f"the brief of {plan.brief.day.isoformat()}")
        trimmed, over_cap = "", False
        if plan.relay is not None:
            standing = writer.projection.documents.get("relay")
            if standing is None or standing.sha256 != _as_kept(store, plan.relay, cap):
                standing = writer.commit_relay(plan.relay, by=PERSON)
            trimmed, over_cap = standing.trimmed, standing.over_cap
            took.append(f"the relay: ~{standing.tokens:,} tokens, next: {standing.headline}")
        writer.append(
            events.SourceAdopted(ts=writer.now(), source=str(found.path), sha256=found.sha256)
        )
        writer.project()
    return Adopted(tuple(took), trimmed, over_cap)


def _is_known(store: FileStore, agent: str, sha256: str) -> bool:
    return any(
        isinstance(event, events.SourceAdopted) and event.sha256 == sha256
        for event in store.newest_events(agent)
    )


def _as_kept(store: FileStore, relay: Relay, cap: int) -> str:
    """The hash that a relay has once it is committed."""
    redacted = relays.parse(store.redaction.text(relays.render(relay)))
    return jsontext.fingerprint(relays.render(trim.trim(redacted, cap).relay).encode())


def _state(store: FileStore, writer: Writer, found: Found, plan: Plan) -> list[str]:
    if plan.state is None and not plan.closings:
        return []
    now = writer.now()
    edited = state.State(agent="")
    if plan.state is not None:
        # Held against what we know, which has no secrets.
        data = found.parts[STATE].removeprefix(b"\xef\xbb\xbf")
        edited = state.parse(store.redaction.json(data))
    closings = {one.id: one for one in plan.closings}
    still_open = adoption.open_loops(edited, closings)
    past, ours = adoption.resolutions(edited, closings, writer.projection.loops, now)
    edited = msgspec.structs.replace(
        edited, open_loops=still_open, resolved=ours, last_active=_by(edited.last_active, now)
    )
    writer.append(*past)
    said: AnyEvent | None = fold.adopt(writer.projection, edited, now)
    if said is not None:
        writer.append(said)
    counts = {
        "open loop": len(still_open),
        "resolved one": len(past) + len(ours),
        "number": len(edited.numbers),
        "other field": len(edited.extra),
    }
    told = [f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counts.items() if n]
    return [f"the state: {', '.join(told)}"] if told else []


def _by(when: datetime | None, now: datetime) -> datetime | None:
    """Nobody was active in the future."""
    return min(when, now) if when else None
