"""Whether all is done: a command that the operator has named says so, and nothing else does."""

from contextlib import closing

from rekindle.errors import RekindleError
from rekindle.flows.stopping import Stopping
from rekindle.flows.world import Agent, Trouble, World
from rekindle.policy.settings import UNTIL_SECONDS
from rekindle.thresholds.running import TICK_SECONDS

STOPPED = "stopped"
"""Somebody wants us to stop: the cycle stays open, and it is asked again."""


class Until:
    """The command of `until:`, run in the agent's folder between two cycles."""

    def __init__(self, command: tuple[str, ...], agent: Agent, world: World) -> None:
        self._command, self._agent, self._world = command, agent, world

    def ask(self) -> str:
        """`passed`, `failed` or `stopped`; empty: there is no such command."""
        if not self._command:
            return ""
        try:
            child = self._world.processes.start(
                self._command,
                prompt="",
                environment=self._agent.environment,
                folder=self._agent.folder,
            )
        except RekindleError as error:
            self._world.tell(Trouble(f"`until:` could not be asked: {error}"))
            return "failed"
        began = self._world.elapsed()
        world = self._world
        stops = Stopping(world.store, self._agent.name, world.interrupted, world.elapsed)
        with closing(child.follow(TICK_SECONDS)) as lines:
            for _ in lines:
                # Closed, it is ended with all that it started.
                if stops():
                    return STOPPED
                if self._world.elapsed() - began > UNTIL_SECONDS:
                    self._world.tell(Trouble(f"`until:` took longer than {UNTIL_SECONDS:g} s"))
                    return "failed"
        return "passed" if child.code == 0 else "failed"
