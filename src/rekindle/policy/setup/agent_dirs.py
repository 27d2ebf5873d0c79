"""Choose the agent for a folder: the one with the innermost `dir:` that contains the folder."""

from collections.abc import Iterable

import msgspec


class AgentDir(msgspec.Struct, frozen=True):
    """The folder in which an agent works."""

    agent: str
    harness: str
    path: str
    """Absolute path of the folder, without symbolic links."""


def choose_agents(dirs: Iterable[AgentDir], place: str, harness: str = "") -> list[str]:
    """Return the agents that work in `place`, an absolute path without symbolic links.

    Only the innermost folder that contains `place` counts. If several agents work in that folder,
    those with the given harness are returned, if there are any. `hook.session_agent` implements the
    same rule without these types.
    """
    around = [entry for entry in dirs if is_inside(place, entry.path)]
    depth = max((len(entry.path.rstrip("/")) for entry in around), default=0)
    innermost = [entry for entry in around if len(entry.path.rstrip("/")) == depth]
    same = [entry for entry in innermost if entry.harness == harness]
    return [entry.agent for entry in same or innermost]


def is_inside(place: str, folder: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
