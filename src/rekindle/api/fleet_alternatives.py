"""Refuse actions that do not work for agents on a fleet, and suggest alternatives."""

from rekindle.config import Project
from rekindle.errors import UsageError

_HOME = (
    "run it in a project without `fleet:`, before `rekindle fleet import NAME` or after"
    " `rekindle fleet remove NAME`"
)
_ON_ITS_HOST = "it is on the agent's host, which `rekindle status NAME` shows"
_INSTEAD = {
    "rekindle up": "use `rekindle run NAME`: on a fleet it continues without your terminal",
    "rekindle down": "use `rekindle stop NAME`, which stops the agent and keeps it stopped",
    "rekindle stop": "stop one agent at a time: `rekindle stop NAME`",
    "rekindle watch": "the engine restarts agents; each host only needs `rekindle fleet worker`",
    "rekindle daemon": "the engine restarts agents; each host only needs `rekindle fleet worker`",
    "rekindle service install": "have your service manager run `rekindle fleet worker`",
    "rekindle service uninstall": "remove `fleet:` from rekindle.yaml, repeat the command, then"
    " put it back",
    "rekindle run --once": "omit --once: on a fleet, `rekindle run` never waits",
    "rekindle run --json": "`rekindle run NAME`, then `rekindle events NAME --follow --json`",
    "rekindle run --for-watchdog": "stop this project's daemon: the engine restarts the agents",
    "rekindle brief --due": "the engine writes briefs at the time of `runtime: brief: at:`",
    "rekindle brief --all": "`rekindle status` shows all agents, `rekindle brief NAME` writes one",
    "rekindle brief --mechanical": "set `runtime: {relay: {summarizer: mechanical}}` in"
    " rekindle.yaml",
    "rekindle decisions --all": "omit --all to see the current decisions; older relays are"
    " on the hosts that ran the agent",
    "rekindle relay set": "`rekindle answer NAME TEXT` sends a message to its next cycle; to set a"
    f" relay, {_HOME}",
    "rekindle relay history": _ON_ITS_HOST,
    "rekindle relay diff": _ON_ITS_HOST,
    "rekindle transcript": _ON_ITS_HOST,
    "rekindle hooks install": "not needed: each host of the fleet sets up hooks for its sessions",
}


def refuse_fleet(project: Project, command: str) -> None:
    """Refuse a command if the project's agents are on a fleet.

    Raises:
        UsageError: The agents are on a fleet. The hint names an alternative.
    """
    if project.settings.fleet is not None:
        raise UsageError(
            f"`{command}` does not work for agents on a fleet", hint=_INSTEAD.get(command, _HOME)
        )
