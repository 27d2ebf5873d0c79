"""Refusals of commands that do not work on agents of a fleet, with what to do instead."""

import click

from rekindle.config import Project
from rekindle.errors import UsageError

_HOME = (
    "do it in a project without `fleet:`, before `rekindle fleet import NAME` or after"
    " `rekindle fleet remove NAME`"
)
_ON_ITS_HOST = "it is kept on the host that the agent runs on: `rekindle status NAME` names it"
_INSTEAD = {
    "rekindle up": "`rekindle run NAME`: on a fleet it continues without your terminal anyway",
    "rekindle down": "`rekindle stop NAME` stops an agent of the fleet, and has it stay stopped",
    "rekindle stop": "`rekindle stop NAME`, with one name at a time",
    "rekindle watch": "the engine starts again what is gone; each host needs its worker alone",
    "rekindle daemon": "the engine starts again what is gone; each host needs its worker alone",
    "rekindle service install": "have your service manager keep `rekindle fleet worker` alive",
    "rekindle service uninstall": "take `fleet:` out of the manifest first: the unit is of before",
    "rekindle run --once": "leave it out: nobody waits at a terminal, and `status` tells the rest",
    "rekindle run --json": "`rekindle run NAME`, then `rekindle events NAME --follow --json`",
    "rekindle run --for-watchdog": "end the daemon of this project: the engine restarts agents",
    "rekindle brief --due": "the engine has them written at the time of `runtime: brief: at:`",
    "rekindle brief --all": "`rekindle status` shows all agents, `rekindle brief NAME` one",
    "rekindle brief --mechanical": "say `personas: {summarizer: …}` in the manifest: the host asks",
    "rekindle decisions --all": "without it, the decisions that hold are shown; older relays are"
    " on the hosts that the agent ran on",
    "rekindle relay set": "`rekindle answer NAME TEXT` tells its next cycle something;"
    f" to set a relay, {_HOME}",
    "rekindle relay history": _ON_ITS_HOST,
    "rekindle relay diff": _ON_ITS_HOST,
    "rekindle transcript": _ON_ITS_HOST,
    "rekindle hooks install": "each host of the fleet has the sessions there report to it",
}


def refuse_fleet(project: Project, option: str = "") -> None:
    """Refuse this command, or one of its options, if the project's agents are on a fleet."""
    if project.settings.fleet is None:
        return
    command = " ".join(filter(None, (click.get_current_context().command_path, option)))
    raise UsageError(f"`{command}` is not for a fleet", hint=_INSTEAD.get(command, _HOME))
