"""Run a command in the agent's folder, and report how it ended."""

import shlex
from collections import deque
from collections.abc import Iterable
from contextlib import closing

import msgspec

from rekindle.errors import ProgramMissingError, RekindleError
from rekindle.flows.launches.launch_access import make_command_access
from rekindle.flows.launches.sandboxed_start import start_program
from rekindle.flows.operator.stop_check import StopCheck
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.policy.exits.refused_end import NOT_STARTED, render_failure
from rekindle.thresholds.supervision import TICK_SECONDS
from rekindle.thresholds.texts import MARGIN_CHARACTERS, UNTIL_CHARACTERS, UNTIL_LINES

STOPPED = "stopped"
"""Verdict if the supervisor was stopped before the command exited."""


class CommandResult(msgspec.Struct, frozen=True):
    verdict: str = ""
    """`passed`, `failed` or `stopped`; empty if there is no command."""
    words: str = ""
    """Reason for the failure, including the end of the command's output."""


class CheckedCommand:
    """A command from rekindle.yaml, run in the agent's folder and sandbox."""

    def __init__(
        self,
        command: tuple[str, ...],
        agent: AgentSpec,
        world: SupervisorPorts,
        *,
        seconds: float,
        has_network: bool = False,
    ) -> None:
        """Set up a command with a timeout in seconds.

        With `has_network`, the command may reach every host even in a sandbox.
        """
        self._command, self._agent, self._ports = command, agent, world
        self._seconds, self._has_network = seconds, has_network

    def run(self) -> CommandResult:
        if not self._command:
            return CommandResult()
        try:
            child = start_program(
                self._ports.processes,
                self._agent,
                self._command,
                prompt="",
                environment=self._agent.environment,
                has_network=self._has_network,
                access=make_command_access(self._agent),
            )
        except RekindleError as error:
            reason = error.reason if isinstance(error, ProgramMissingError) else error
            return self._make_failure(f"{NOT_STARTED}: {reason}")
        began = self._ports.elapsed()
        world = self._ports
        stops = StopCheck(world.store, self._agent.name, world.interrupted, world.elapsed)
        output: deque[bytes] = deque(maxlen=UNTIL_LINES)
        with closing(child.follow(TICK_SECONDS)) as lines:
            for line in lines:
                if line is not None:
                    output.append(line)
                # Closing the stream ends the command and everything that it started.
                if stops():
                    return CommandResult(STOPPED)
                if self._ports.elapsed() - began > self._seconds:
                    return self._make_failure(f"took longer than {self._seconds:g} s", output)
        if child.code == 0:
            return CommandResult("passed")
        errors = child.errors.encode("utf-8", "replace").splitlines()
        return self._make_failure(f"exited with {child.code}", [*output, *errors])

    def _make_failure(self, how: str, output: Iterable[bytes] = ()) -> CommandResult:
        command = to_one_line(shlex.join(self._command), UNTIL_CHARACTERS)
        text = b"\n".join(line.rstrip() for line in output).decode("utf-8", "replace").strip()
        # Redact before truncating: a truncated secret may not be recognized.
        text = self._ports.store.redaction.text(text[-UNTIL_CHARACTERS - MARGIN_CHARACTERS :])
        tail = text[-UNTIL_CHARACTERS:].splitlines()[-UNTIL_LINES:]
        words = render_failure(command, how, list(map(strip_invisible, tail)))
        return CommandResult("failed", words)
