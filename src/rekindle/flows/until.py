"""Whether all is done: the command of `until:`, run between two cycles."""

import shlex
from collections import deque
from collections.abc import Iterable
from contextlib import closing

import msgspec

from rekindle.documents.identity import one_line, visible
from rekindle.errors import ProgramMissingError, RekindleError
from rekindle.flows.stopping import Stopping
from rekindle.flows.world import Agent, World
from rekindle.policy.refused_end import NOT_STARTED, render_failure
from rekindle.policy.settings import UNTIL_SECONDS
from rekindle.thresholds.running import TICK_SECONDS
from rekindle.thresholds.texts import MARGIN_CHARACTERS, UNTIL_CHARACTERS, UNTIL_LINES

STOPPED = "stopped"
"""The supervisor is told to stop: the cycle stays open, and the command runs again later."""


class UntilResult(msgspec.Struct, frozen=True):
    verdict: str = ""
    """`passed`, `failed` or `stopped`; empty: there is no such command."""
    words: str = ""
    """How it failed, with the end of its output."""


class Until:
    """The command of `until:`, run in the agent's folder between two cycles."""

    def __init__(self, command: tuple[str, ...], agent: Agent, world: World) -> None:
        self._command, self._agent, self._world = command, agent, world

    def ask(self) -> UntilResult:
        """Run the command, and return whether it passed."""
        if not self._command:
            return UntilResult()
        try:
            child = self._world.processes.start(
                self._command,
                prompt="",
                environment=self._agent.environment,
                folder=self._agent.folder,
            )
        except RekindleError as error:
            reason = error.reason if isinstance(error, ProgramMissingError) else error
            return self._failed(f"{NOT_STARTED}: {reason}")
        began = self._world.elapsed()
        world = self._world
        stops = Stopping(world.store, self._agent.name, world.interrupted, world.elapsed)
        output: deque[bytes] = deque(maxlen=UNTIL_LINES)
        with closing(child.follow(TICK_SECONDS)) as lines:
            for line in lines:
                if line is not None:
                    output.append(line)
                # Closing it ends the command with everything that it started.
                if stops():
                    return UntilResult(STOPPED)
                if self._world.elapsed() - began > UNTIL_SECONDS:
                    return self._failed(f"took longer than {UNTIL_SECONDS:g} s", output)
        if child.code == 0:
            return UntilResult("passed")
        errors = child.errors.encode("utf-8", "replace").splitlines()
        return self._failed(f"exited with {child.code}", [*output, *errors])

    def _failed(self, how: str, output: Iterable[bytes] = ()) -> UntilResult:
        command = one_line(shlex.join(self._command), UNTIL_CHARACTERS)
        text = b"\n".join(line.rstrip() for line in output).decode("utf-8", "replace").strip()
        # Secrets are redacted before the cut: half a secret is not recognized.
        text = self._world.store.redaction.text(text[-UNTIL_CHARACTERS - MARGIN_CHARACTERS :])
        tail = text[-UNTIL_CHARACTERS:].splitlines()[-UNTIL_LINES:]
        return UntilResult("failed", render_failure(command, how, list(map(visible, tail))))
