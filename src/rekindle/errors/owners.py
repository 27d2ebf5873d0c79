"""Errors about ownership: another process or host owns the agent."""

from rekindle.errors.root import RekindleError


class OwnershipError(RekindleError):
    """Raised when another process or host is this agent's writer."""

    exit_code = 6
    meaning = "another process or host owns the agent"


class BusyError(OwnershipError):
    """Raised when another process on this host holds the agent's lock."""

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
    """Raised when this process runs in a sandbox and may not write to the user's folder.

    A process outside the sandbox has to write instead, as if it held the lock.
    """

    def __init__(self, agent: str, path: str) -> None:
        OwnershipError.__init__(
            self,
            f"agent {agent}: {path} is read-only for this process, which probably runs in an "
            "agent's sandbox",
            hint="run the command in a terminal, outside the agent's sandbox",
        )
        self.agent = agent
        self.waited = 0.0
        self.path = path


class FolderLostError(OwnershipError):
    """Raised when a running supervisor's folder was removed or replaced."""

    exit_code = 12
    meaning = "the agent was stopped because its folder was removed or replaced"

    def __init__(self, agent: str, path: str, reason: str) -> None:
        super().__init__(
            f"agent {agent}: its folder {path} is not the one it was started in: {reason}; the "
            "agent was stopped",
            hint=f"check the folder, then run `rekindle up {agent}` (in the new folder, if you "
            "moved the project)",
        )
        self.agent = agent
        self.path = path
        self.reason = reason


class FencedError(OwnershipError):
    """Raised when another host took over the agent, so this writer's generation is outdated."""

    def __init__(self, agent: str, ours: int, current: int) -> None:
        super().__init__(
            f"agent {agent} was taken over: its generation is now {current}, but this writer has "
            f"{ours}",
            hint="stop working on it here, or take it back with --take-over",
        )
        self.agent = agent
        self.ours = ours
        self.current = current


class ForeignOwnerError(OwnershipError):
    """Raised when the folder's owner record names another host."""

    def __init__(self, agent: str, owner: str) -> None:
        super().__init__(
            f"agent {agent} belongs to host {owner}",
            hint="if that host no longer works on it, repeat the command with --take-over",
        )
        self.agent = agent
        self.owner = owner


class OnFleetError(ForeignOwnerError):
    """Raised when the agent is on a fleet, so the files here are outdated."""

    def __init__(self, agent: str, fleet: str) -> None:
        OwnershipError.__init__(
            self,
            f"agent {agent} is on the fleet {fleet}",
            hint="add `fleet:` to rekindle.yaml to control it there, or run `rekindle fleet remove "
            f"{agent}` to move it back; if that fleet is gone for good, remove owner.json from "
            "the agent's folder",
        )
        self.agent = agent
        self.owner = fleet


class StalePushError(OwnershipError):
    """Raised when another owner pushed to the work branch. Pushes from here no longer count."""

    def __init__(self, agent: str, generation: int, found: str) -> None:
        super().__init__(
            f"agent {agent} was taken over: its work branch is at {found[:12] or 'no commit'}, "
            f"which was not pushed by generation {generation}",
            hint=(
                "stop working on it here; the files in this folder stay, and you can push them by "
                "hand"
            ),
        )
        self.agent = agent
        self.generation = generation
        self.found = found


class SupervisedError(OwnershipError):
    """Raised when another `rekindle run` is supervising this agent."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"agent {agent} is already running",
            hint=f"`rekindle status {agent}` shows its state; `rekindle stop {agent}` stops it",
        )
        self.agent = agent
