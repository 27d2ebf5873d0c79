"""`rekindle decisions`: show an agent's decisions."""

from collections.abc import Iterator
from typing import Any

import click

from rekindle.api.agent_store import AgentStore
from rekindle.cli.options import (
    json_option,
    open_agent,
    open_files,
)
from rekindle.cli.output import (
    echo,
    print_json,
    render_moment,
    style_text,
)
from rekindle.documents import relay as relays
from rekindle.documents.events import (
    CycleStarted,
    RelayCommitted,
)
from rekindle.errors import DocumentError
from rekindle.policy.relay import decision_ledger as policy
from rekindle.policy.relay.decision_ledger import (
    DecisionStatus,
    LedgerDecision,
    LedgerEntry,
    LedgerRevision,
    RelayPosition,
)
from rekindle.stores.files import FileStore


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--search",
    metavar="WORDS",
    help="Show only decisions, including old ones, that contain all of these words.",
)
@click.option(
    "--all", "every", is_flag=True, help="Also show superseded, archived and dropped decisions."
)
@json_option
def decisions(agent: str | None, search: str | None, every: bool, as_json: bool) -> None:
    """Show AGENT's decisions and their status.

    By default, the command shows only the decisions in the current relay. If a decision is edited,
    the new text supersedes the old one. A decision that is no longer in the relay was either
    dropped, or archived because the relay was too long. Archived decisions are still in effect.
    """
    if every or search is not None:
        _, files, name = open_files(agent, "--all")
        entries = policy.build_ledger(_read_revisions(files, name)) if files.exists(name) else ()
        entries = policy.search_ledger(entries, search or "")
    else:
        _, store, name = open_agent(agent)
        entries = _list_in_force(store, name)
    if as_json:
        print_json({"decisions": [_make_json(entry) for entry in entries]})
        return
    if not entries:
        hint = f" `rekindle decisions {name} --all` also shows older ones."
        echo("No decisions found." + ("" if every or search is not None else hint))
    for entry in entries:
        _print_entry(entry)


def _list_in_force(store: AgentStore, name: str) -> tuple[LedgerEntry, ...]:
    """Return the decisions in the current relay, without reading the relay's history."""
    data = store.document(name, "relay") if store.exists(name) else None
    if data is None:
        return ()
    view = store.read(name)
    standing = view.committed.documents.get("relay")
    position = RelayPosition(standing.seq, standing.ts, view.committed.cycle) if standing else None
    return tuple(
        LedgerEntry(decision, None, position)
        for decision in policy.read_decisions(relays.parse(data))
    )


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


def _print_entry(entry: LedgerEntry) -> None:
    is_held = entry.status in {DecisionStatus.IN_FORCE, DecisionStatus.ARCHIVED}
    mark = style_text("✓", fg="green") if is_held else style_text("·", dim=True)
    echo(mark, f" {entry.decision.text}")
    facts = [] if entry.status is DecisionStatus.IN_FORCE else [str(entry.status)]
    if entry.decision.made:
        facts.append(f"made {entry.decision.made.isoformat()}")
    if entry.first:
        facts.append(f"first seen {_render_position(entry.first)}")
    if entry.last and (entry.first != entry.last):
        facts.append(f"last seen {_render_position(entry.last)}")
    echo(style_text(f"  {', '.join(facts)}", dim=True))
    if entry.by:
        echo(f"  → {entry.by.text}")


def _render_position(position: RelayPosition) -> str:
    cycle = f"cycle {position.cycle}, " if position.cycle else ""
    return f"{render_moment(position.ts, '%Y-%m-%d')} ({cycle}relay {position.seq})"


def _make_json(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "text": entry.decision.text,
        "made": entry.decision.made,
        "key": entry.decision.key,
        "status": entry.status,
        "by": entry.by.text if entry.by else None,
        "first": entry.first,
        "last": entry.last,
    }
