"""`rekindle handoff`: continue an agent's work in a fresh session, from a checkpoint."""

import click

from rekindle.api.hand_off import AcceptedHandoff, request_handoff
from rekindle.cli.options import (
    json_option,
    open_agent,
)
from rekindle.cli.output import echo, print_json


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--to",
    "route",
    metavar="ROUTE",
    default="",
    help="Continue on another CLI or account of the agent, such as codex or claude-code/work.",
)
@json_option
def handoff(agent: str | None, route: str, as_json: bool) -> None:
    """Continue AGENT's work in a fresh session, which starts from a checkpoint.

    The current session stops between two tool calls, so no call is interrupted. A session in a
    terminal stops at the user's next prompt.

    With --to, the work continues on another CLI or account until the cycle ends.
    """
    project, store, name = open_agent(agent, operator=True)
    accepted = request_handoff(project, store, name, route)
    if as_json:
        print_json({"agent": name, "asked": "handoff", "to": accepted.to})
        return
    for line in describe_handoff(
        name, accepted, stays=project.manifest.agents[name].mode == "stay"
    ):
        echo(line)


def describe_handoff(name: str, accepted: AcceptedHandoff, *, stays: bool) -> tuple[str, str]:
    """Return what happens next, and which command shows it. `stays` means `mode: stay`."""
    if not accepted.is_working:
        return (
            f"✓ {name}: no session is working now; the work continues on {accepted.to}",
            f"Next: `rekindle events -f {name}` shows when the session starts.",
        )
    when = "at the user's next prompt" if stays else "between two tool calls"
    where = f" on {accepted.to}" if accepted.to else ""
    following = f"Next: `rekindle events -f {name}` shows the handoff."
    return (
        f"✓ {name}: its session will stop {when}; a fresh one continues{where} with a checkpoint",
        f"{following} If the session exits first, no handoff is needed.",
    )
