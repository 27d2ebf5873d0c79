"""`rekindle budget`: show an agent's spending and caps, or raise the caps."""

import click
import msgspec

from rekindle.api.budgets import RunBudget
from rekindle.cli.options import json_option, open_handle
from rekindle.cli.output import echo, print_json
from rekindle.formats.counts import render_count


@click.command()
@click.argument("agent", required=False)
@click.option("--usd", type=float, help="New cap in dollars.")
@click.option("--tokens", type=int, help="New cap in tokens.")
@click.option("--hours", type=float, help="New cap in hours.")
@json_option
def budget(
    agent: str | None,
    usd: float | None,
    tokens: int | None,
    hours: float | None,
    as_json: bool,
) -> None:
    """Show what AGENT's run has spent and its caps, or raise caps of this run.

    The next run has the caps in rekindle.yaml again. To change those, edit `budget:` there.
    """
    handle = open_handle(agent)
    is_raised = (usd, tokens, hours) != (None, None, None)
    now = handle.raise_budget(usd=usd, tokens=tokens, hours=hours) if is_raised else handle.budget()
    if as_json:
        caps, spent = msgspec.structs.asdict(now.caps), msgspec.structs.asdict(now.spent)
        print_json({"agent": handle.name, "caps": caps, "spent": spent})
        return
    lines = _render_lines(now)
    mark = "✓ " if is_raised else ""
    echo(f"{mark}{handle.name}: {', '.join(lines) or 'its run has no caps'}")
    if not lines:
        echo("Next: set `budget:` in rekindle.yaml, for example `budget: {usd: 10}`.")


def _render_lines(now: RunBudget) -> list[str]:
    """Return the spending of each unit that has a cap, with `~` for an estimated cost."""
    caps, spent, mark = now.caps, now.spent, "~" if now.is_estimated else ""
    return [
        words
        for cap, words in (
            (caps.usd, f"{mark}${spent.usd or 0:.2f} of ${caps.usd or 0:.2f} spent"),
            (
                caps.tokens,
                f"{spent.tokens or 0:,} of {render_count(caps.tokens or 0, 'token')} used",
            ),
            (caps.hours, f"{spent.hours or 0:.1f} of {render_count(caps.hours or 0, 'hour')} used"),
        )
        if cap is not None
    ]
