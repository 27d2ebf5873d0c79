"""`rekindle handoff`: continue an agent's work in a fresh session, from a checkpoint."""

import click

from rekindle.cli.options import (
    json_option,
    open_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.documents.events import HandoffRequested
from rekindle.errors import AgentError
from rekindle.policy.projection import sessions
from rekindle.system import clock
from rekindle.wiring.open_store import find_harness


@click.command()
@click.argument("agent", required=False)
@json_option
def handoff(agent: str | None, as_json: bool) -> None:
    """Continue AGENT's work in a fresh session, which starts from a checkpoint.

    The current session stops between two tool calls, so no call is interrupted. A session in a
    terminal stops at the user's next prompt.
    """
    project, store, name = open_agent(agent, operator=True)
    projection = store.read(name).projection
    newest = sessions.find_newest_launch(projection.attempts)
    if not store.is_supervised(name) or newest is None or newest.exit:
        raise AgentError(
            f"{name} is not running, so there is nothing to hand off",
            hint=f"`rekindle status {name}` shows why it is not running, and how to continue",
        )
    entry = project.manifest.agents[name]
    stays = entry.mode == "stay"
    launch = next(mark for mark, attempt in projection.attempts.items() if attempt is newest)
    is_heard = bool(sessions.find_launched_session(projection.lives, launch))
    if find_harness(project, name).brake(interactive=stays) is None or not is_heard:
        where = " in a terminal" if stays else ""
        reason = (
            "" if is_heard else ": none of its hooks has reported yet (`rekindle hooks install`)"
        )
        raise AgentError(
            f"{entry.harness} cannot be stopped between two turns{where}{reason}",
            hint=f"`rekindle restart --fresh {name}` stops it now and starts a fresh session",
        )
    store.submit(name, HandoffRequested(ts=clock.read_clock()))
    if as_json:
        print_json({"agent": name, "asked": "handoff"})
        return
    when = "at the user's next prompt" if stays else "between two tool calls"
    echo(f"✓ {name}: its session will stop {when}; a fresh one continues with a checkpoint")
    echo(
        f"Next: `rekindle events -f {name}` shows the handoff. If the session exits first, no "
        "handoff is needed."
    )
