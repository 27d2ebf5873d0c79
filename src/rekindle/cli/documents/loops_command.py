"""`rekindle loops` and `rekindle resolve`: show, open and resolve loops."""

from typing import Any

import click

from rekindle.api.loops import LoopChange
from rekindle.cli.options import (
    agent_option,
    json_option,
    open_handle,
    take_over_option,
)
from rekindle.cli.output import (
    echo,
    print_json,
    style_text,
)
from rekindle.documents.state import OpenLoop
from rekindle.policy.projection.open_loops import Loop


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
    handle = open_handle(agent)
    opened, resolved = handle.loops.list(), handle.loops.resolved()
    claims = {loop.id: handle.loops.claim(loop.id) for loop in opened}
    if as_json:
        print_json(
            {
                "open": [
                    {
                        **_make_json(loop, handle.loops.history(loop.id)),
                        "proposed": claims[loop.id] or None,
                    }
                    for loop in opened
                ],
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
        if claims[loop.id]:
            echo(f"  The agent proposes to resolve it: {claims[loop.id]}")
            echo(f"  → rekindle resolve {loop.id} REASON")
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
    loops = open_handle(agent or outer).loops
    _print_change(loops.open(identity, " ".join(text), take_over=take_over), as_json=as_json)


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
    loops = open_handle(agent).loops
    change = loops.resolve(identity, " ".join(reason), take_over=take_over)
    _print_change(change, is_resolve=True, as_json=as_json)


def _print_change(change: LoopChange, *, is_resolve: bool = False, as_json: bool) -> None:
    if as_json:
        print_json({"id": change.loop, "outcome": change.outcome, "folded": change.is_recorded})
        return
    if change.outcome == "unchanged":
        state = "resolved" if is_resolve else "open with this text"
        echo(f"Nothing to do: loop {change.loop} is already {state}.")
        return
    later = " (recorded; the agent's supervisor will add it to the log)"
    waits = "" if change.is_recorded else later
    echo(f"✓ loop {change.loop} {change.outcome}{waits}")


def _make_json(loop: OpenLoop, history: Loop) -> dict[str, Any]:
    return {
        "id": loop.id,
        "text": loop.text,
        "added": loop.added,
        "stale": loop.stale,
        "reopened": history.times_reopened,
        "by": history.opened_by or None,
        "history": [
            {"ts": mark.ts, "resolved" if mark.closes else "opened": mark.text}
            for mark in history.marks
        ],
        **loop.extra,
    }
