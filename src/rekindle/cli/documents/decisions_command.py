"""`rekindle decisions`: show an agent's decisions."""

from typing import Any

import click

from rekindle.cli.options import (
    json_option,
    open_handle,
)
from rekindle.cli.output import (
    echo,
    print_json,
    render_moment,
    style_text,
)
from rekindle.policy.relay.decision_ledger import (
    DecisionStatus,
    LedgerEntry,
    RelayPosition,
)


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
    handle = open_handle(agent)
    decided, name = handle.decisions, handle.name
    shows_all = every or search is not None
    entries = decided.history(search or "") if shows_all else decided.list()
    if as_json:
        print_json({"decisions": [_make_json(entry) for entry in entries]})
        return
    if not entries:
        hint = f" `rekindle decisions {name} --all` also shows older ones."
        echo("No decisions found." + ("" if shows_all else hint))
    for entry in entries:
        _print_entry(entry)


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
