"""Errors about ownership: another process or host has the agent."""

from rekindle.errors.root import RekindleError


class OwnershipError(RekindleError):
    """Another process or host is this agent's writer."""

    exit_code = 6
    meaning = "another process or host owns the agent"


class BusyError(OwnershipError):
    """Another process on this host holds the agent's lock."""

    def __init__(self, agent: str, waited: float) -> None:
        super().__init__(
            f"agent {agent} is busy: another process still held its lock after {waited:g} s"
            if waited
            else f"agent {agent} is busy: another process is already using it",
            hint="wait until it is done, then repeat the command",
        )
        self.agent = agent
        self.waited = waited


class ConfinedError(BusyError):
    """This process may not write to the user's folder, because it is running in an agent's sandbox.

    A process outside the sandbox must write instead, as if that process held the lock.
    """

    def __init__(self, agent: str, path: str) -> None:
        OwnershipError.__init__(
            self,
            f"agent {agent}: {path} is read-only for this process, as in an agent's sandbox",
            hint="run the command in a terminal, outside the agent's sandbox",
        )
        self.agent = agent
        self.waited = 0.0
        self.path = path


class FolderLostError(OwnershipError):
    """The folder of a running supervisor was removed or replaced."""

    exit_code = 12
    meaning = "the agent's folder was removed or replaced under its supervisor; the agent was ended"

    def __init__(self, agent: str, path: str, reason: str) -> None:
        super().__init__(
            f"agent {agent}: its folder {path} is not the one it was started in: {reason};"
            " the agent was ended",
            hint=f"look at the folder, then `rekindle up {agent}` (in its new place, if you moved"
            " the project)",
        )
        self.agent = agent
        self.path = path
        self.reason = reason


class FencedError(OwnershipError):
    """Another host has taken over the agent; this writer's generation is outdated."""

    def __init__(self, agent: str, ours: int, current: int) -> None:
        super().__init__(
            f"agent {agent} was taken over: its generation is {current}, ours was {ours}",
            hint="stop working on it here, or take it back with --take-over",
        )
        self.agent = agent
        self.ours = ours
        self.current = current


class ForeignOwnerError(OwnershipError):
    """The folder's owner record names another host."""

    def __init__(self, agent: str, owner: str) -> None:
        super().__init__(
            f"agent {agent} belongs to host {owner}",
            hint="if that host no longer works on it, repeat the command with --take-over",
        )
        self.agent = agent
        self.owner = owner


class OnFleetError(ForeignOwnerError):
    """The folder's owner record names a fleet; these files are older than the move there."""

    def __init__(self, agent: str, fleet: str) -> None:
        OwnershipError.__init__(
            self,
            f"agent {agent} lives on the fleet {fleet}",
            hint="with `fleet:` in rekindle.yaml the same commands act on it there;"
            f" `rekindle fleet remove {agent}` brings it home; if that fleet is gone for good,"
            " remove owner.json from its folder",
        )
        self.agent = agent
        self.owner = fleet


class StalePushError(OwnershipError):
    """The work branch has a commit from another owner; pushes from this host no longer count."""

    def __init__(self, agent: str, generation: int, found: str) -> None:
        super().__init__(
            f"agent {agent} was taken over: its work branch is at {found[:12] or 'no commit'}, "
            f"which generation {generation} has not pushed",
            hint="stop working on it here; what is in this folder stays, and can be pushed by hand",
        )
        self.agent = agent
        self.generation = generation
        self.found = found


class SupervisedError(OwnershipError):
    """Another `rekindle run` is supervising this agent."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"agent {agent} is already running",
            hint=f"`rekindle status {agent}` shows its state; `rekindle stop {agent}` stops it",
        )
        self.agent = agent
