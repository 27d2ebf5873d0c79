"""`rekindle decisions`."""

from collections.abc import Iterator
from typing import Any

import click

from rekindle.cli.options import Store, as_json, open_agent, open_files
from rekindle.cli.output import echo, print_json, render_moment, styled
from rekindle.documents import relay as relays
from rekindle.documents.event import CycleStarted, RelayCommitted
from rekindle.errors import DocumentError
from rekindle.policy import decisions as policy
from rekindle.policy.decisions import Decision, Entry, Revision, Seen, Status
from rekindle.stores.files import FileStore


@click.command()
@click.argument("agent", required=False)
@click.option("--search", metavar="WORDS", help="Only those with all of these words, old ones too.")
@click.option("--all", "every", is_flag=True, help="Also what was superseded, archived or dropped.")
@as_json
def decisions(agent: str | None, search: str | None, every: bool, as_json: bool) -> None:
    """What was decided, and what became of it.

    Without an option: the decisions that the relay of AGENT holds now. A decision that is edited is
    superseded by its new words; one that is gone from the relay was dropped, or, where the relay
    was over its cap, archived: then it still holds.
    """
    if every or search is not None:
        _, files, name = open_files(agent, "--all")
        found = policy.ledger(_revisions(files, name)) if files.exists(name) else ()
        found = policy.search(found, search or "")
    else:
        _, store, name = open_agent(agent)
        found = _in_force(store, name)
    if as_json:
        print_json([_as_json(entry) for entry in found])
        return
    if not found:
        hint = "" if every or search is not None else " `--all` also shows older ones."
        echo(f"No decision was found.{hint}")
    for entry in found:
        _print(entry)


def _in_force(store: Store, name: str) -> tuple[Entry, ...]:
    """What the relay has now: nothing else is read, however long the history is."""
    data = store.document(name, "relay") if store.exists(name) else None
    if data is None:
        return ()
    view = store.read(name)
    standing = view.committed.documents.get("relay")
    seen = Seen(standing.seq, standing.ts, view.committed.cycle) if standing else None
    return tuple(Entry(one, None, seen) for one in policy.read(relays.parse(data)))


def _revisions(store: FileStore, name: str) -> Iterator[Revision]:
    """Every committed relay there was, and at last what somebody has written since."""
    cycle = 0
    seen = None
    for entry in store.entries_since(name, 0):
        event = entry.event
        if isinstance(event, CycleStarted):
            cycle = max(cycle, event.cycle)
        elif isinstance(event, RelayCommitted):
            data = store.committed_relay(name, event)
            if data is None:
                continue  # lost: that says nothing about its decisions
            seen = Seen(event.seq, event.ts, cycle)
            kept = _decisions(data)
            trimmed = _decisions(store.archived(name, event.trimmed) if event.trimmed else None)
            yield Revision(seen, kept, trimmed)
    now = _decisions(store.document(name, "relay"))
    if seen is not None:
        yield Revision(seen, now)


def _decisions(data: bytes | None) -> tuple[Decision, ...]:
    """Those of a text from the archive; one that is gone or spoiled holds none."""
    try:
        return () if data is None else policy.read(relays.parse(data))
    except DocumentError:
        return ()


def _print(entry: Entry) -> None:
    is_held = entry.status in {Status.IN_FORCE, Status.ARCHIVED}
    mark = styled("✓", fg="green") if is_held else styled("·", dim=True)
    echo(mark, f" {entry.decision.text}")
    told = [] if entry.status is Status.IN_FORCE else [str(entry.status)]
    if entry.decision.made:
        told.append(f"made {entry.decision.made.isoformat()}")
    if entry.first:
        told.append(f"first seen {_where(entry.first)}")
    if entry.last and (entry.first != entry.last):
        told.append(f"last seen {_where(entry.last)}")
    echo(styled(f"  {', '.join(told)}", dim=True))
    if entry.by:
        echo(f"  → {entry.by.text}")


def _where(seen: Seen) -> str:
    cycle = f"cycle {seen.cycle}, " if seen.cycle else ""
    return f"{render_moment(seen.ts, '%Y-%m-%d')} ({cycle}relay {seen.seq})"


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        "text": entry.decision.text,
        "made": entry.decision.made,
        "key": entry.decision.key,
        "status": entry.status,
        "by": entry.by.text if entry.by else None,
        "first": entry.first,
        "last": entry.last,
    }
