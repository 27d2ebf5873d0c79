"""Which agent a folder belongs to: the one with the innermost `dir:` around it."""

from collections.abc import Iterable

import msgspec


class AgentDir(msgspec.Struct, frozen=True):
    """The folder that one agent works in."""

    agent: str
    harness: str
    path: str
    """Absolute and without links."""


def choose_agents(dirs: Iterable[AgentDir], place: str, harness: str = "") -> list[str]:
    """Return the agents that work in `place`, an absolute path without links.

    Of several folders around it the innermost counts. Of several agents in that folder those with
    the given harness count, if there are any. hook.py has the same function without these types.
    """
    around = [one for one in dirs if is_inside(place, one.path)]
    depth = max((len(one.path.rstrip("/")) for one in around), default=0)
    innermost = [one for one in around if len(one.path.rstrip("/")) == depth]
    same = [one for one in innermost if one.harness == harness]
    return [one.agent for one in same or innermost]


def is_inside(place: str, folder: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
