"""`rekindle loops` and `rekindle resolve`: show, open and resolve loops."""

from typing import Any

import click

from rekindle.api.agent_store import AgentStore
from rekindle.cli.options import (
    agent_option,
    json_option,
    open_agent,
    take_over_option,
)
from rekindle.cli.output import (
    echo,
    print_json,
    style_text,
)
from rekindle.documents.events import (
    LoopAdded,
    LoopResolved,
)
from rekindle.documents.state import OpenLoop
from rekindle.policy.projection import open_loops as policy
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock


class LoopsGroup(click.Group):
    """Command group that accepts an agent instead of a command, for `rekindle loops AGENT`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        place = 0
        while place < len(args) and args[place].startswith("-"):
            place += 2 if args[place] in {"-a", "--agent"} else 1
        word, rest = args[place : place + 1], args[place + 1 :]
        if word and word[0] not in self.commands and all(option.startswith("-") for option in rest):
            args = [*args[:place], "--agent", *word, *rest]
        return super().parse_args(ctx, args)


@click.group(
    cls=LoopsGroup, invoke_without_command=True, subcommand_metavar="[AGENT | add ID TEXT...]"
)
@agent_option
@json_option
@click.pass_context
def loops(context: click.Context, agent: str | None, as_json: bool) -> None:
    """Show AGENT's open loops, oldest first, and the recently resolved ones.

    An open loop is a question or a task that is not settled yet. Every cycle starts with the list
    of open loops, so the agent does not forget any.
    """
    context.obj = agent
    if context.invoked_subcommand:
        return
    project, store, name = open_agent(agent)
    limits = project.settings.runtime.loops
    projection = _read_known(store, name)
    now = clock.read_clock()
    opened = policy.list_open_loops(projection.loops, now, limits)
    resolved = policy.list_recently_resolved(projection.loops, now, limits)
    if as_json:
        print_json(
            {
                "open": [_make_json(loop, projection) for loop in opened],
                "resolved": [
                    {
                        "id": resolution.id,
                        "reason": resolution.reason,
                        "resolved_date": resolution.resolved_date,
                    }
                    for resolution in resolved
                ],
            }
        )
        return
    if not opened:
        echo("No open loops. Add one with `rekindle loops add ID TEXT`.")
    for loop in opened:
        age = style_text("  stale" if loop.stale else "", fg="yellow")
        echo(style_text(loop.id, bold=True), f"  since {loop.added}", age, f"\n  {loop.text}")
    for resolution in resolved:
        echo(
            style_text(
                f"✓ {resolution.id}  {resolution.resolved_date}: {resolution.reason}", dim=True
            )
        )


@loops.command("add")
@click.argument("identity", metavar="ID")
@click.argument("text", nargs=-1, required=True)
@agent_option
@take_over_option
@json_option
@click.pass_obj
def add_loop(  # noqa: PLR0917 - click passes the group's object first, the rest by name
    outer: str | None,
    identity: str,
    text: tuple[str, ...],
    agent: str | None,
    take_over: bool,
    as_json: bool,
) -> None:
    """Open a loop. If ID exists, change its text or reopen it."""
    _, store, name = open_agent(agent or outer)
    store.adopt_edits(name)
    before = _read_known(store, name)
    identity = store.redaction.identity(identity)
    line = store.redaction.text(" ".join(text))
    event = policy.propose_loop(before.loops, identity, line, clock.read_clock())
    loop = before.loops.get(identity)
    did = "opened" if loop is None else "reworded" if loop.is_open else "reopened"
    _submit_event(store, name, event, take_over=take_over, did=did, json=as_json, identity=identity)


@click.command()
@click.argument("identity", metavar="ID")
@click.argument("reason", nargs=-1, required=True)
@agent_option
@take_over_option
@json_option
def resolve(
    identity: str, reason: tuple[str, ...], agent: str | None, take_over: bool, as_json: bool
) -> None:
    """Resolve an open loop and record the reason. Resolving it again has no effect."""
    _, store, name = open_agent(agent)
    store.adopt_edits(name)
    identity = store.redaction.identity(identity)
    line = store.redaction.text(" ".join(reason))
    event = policy.resolve_loop(_read_known(store, name).loops, identity, line, clock.read_clock())
    _submit_event(
        store, name, event, take_over=take_over, did="resolved", json=as_json, identity=identity
    )


def _read_known(store: AgentStore, name: str) -> Projection:
    return store.read(name).projection if store.exists(name) else Projection(agent=name)


def _submit_event(
    store: AgentStore,
    name: str,
    event: LoopAdded | LoopResolved | None,
    *,
    take_over: bool,
    did: str,
    json: bool,
    identity: str,
) -> None:
    folded = store.submit(name, event, take_over=take_over) if event else True
    outcome = did if event else "unchanged"
    if json:
        print_json({"id": identity, "outcome": outcome, "folded": folded})
        return
    if event is None:
        state = "resolved" if did == "resolved" else "open with this text"
        echo(f"Nothing to do: loop {identity} is already {state}.")
        return
    waits = "" if folded else " (recorded; the agent's supervisor will add it to the log)"
    echo(f"✓ loop {identity} {did}{waits}")


def _make_json(loop: OpenLoop, projection: Projection) -> dict[str, Any]:
    history = projection.loops[loop.id]
    return {
        "id": loop.id,
        "text": loop.text,
        "added": loop.added,
        "stale": loop.stale,
        "reopened": history.times_reopened,
        "history": [
            {"ts": mark.ts, "resolved" if mark.closes else "opened": mark.text}
            for mark in history.marks
        ],
        **loop.extra,
    }
