"""`rekindle handoff`: have a fresh session go on with a checkpoint, at the next boundary."""

import click

from rekindle.cli.options import as_json, open_agent, print_json
from rekindle.documents.event import HandoffAsked
from rekindle.errors import AgentError
from rekindle.system import clock
from rekindle.wiring.store import HARNESSES


@click.command()
@click.argument("agent", required=False)
@as_json
def handoff(agent: str | None, as_json: bool) -> None:
    """Have a fresh session go on with AGENT's work, with a checkpoint of what was done.

    The session that runs is stopped between two tool calls, none of which is cut; one in a
    terminal at its person's next prompt.
    """
    project, store, name = open_agent(agent)
    if not store.is_supervised(name):
        raise AgentError(
            f"{name} does not run: there is nothing to hand off",
            hint=f"`rekindle run {name}` starts it, and tells it where the work stands",
        )
    entry = project.manifest.agents[name]
    stays = entry.mode == "stay"
    if HARNESSES[entry.harness].brake(interactive=stays) is None:
        where = " in a terminal" if stays else ""
        raise AgentError(
            f"{entry.harness} cannot be stopped between two turns{where}",
            hint=f"`rekindle restart --fresh {name}` ends it where it is and begins anew",
        )
    store.submit(name, HandoffAsked(ts=clock.now()))
    if as_json:
        print_json({"agent": name, "asked": "handoff"})
        return
    when = "at its person's next prompt" if stays else "between two of its tool calls"
    click.echo(f"✓ {name}: is stopped {when}, and a fresh session goes on with a checkpoint")
    click.echo("`rekindle events` tells when; a session that ends before then needs none.")
