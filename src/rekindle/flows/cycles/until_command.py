"""Run the `until:` command between two cycles to find out whether the work is done."""

import shlex
from collections import deque
from collections.abc import Iterable
from contextlib import closing

import msgspec

from rekindle.errors import ProgramMissingError, RekindleError
from rekindle.flows.operator.stop_check import StopCheck
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.policy.exits.refused_end import NOT_STARTED, render_failure
from rekindle.policy.settings.runtime_settings import UNTIL_SECONDS
from rekindle.thresholds.supervision import TICK_SECONDS
from rekindle.thresholds.texts import MARGIN_CHARACTERS, UNTIL_CHARACTERS, UNTIL_LINES

UNTIL_STOPPED = "stopped"
"""Verdict if the supervisor was stopped; the cycle stays open, and the command runs again later."""


class UntilResult(msgspec.Struct, frozen=True):
    verdict: str = ""
    """`passed`, `failed` or `stopped`; empty if no `until:` command is configured."""
    words: str = ""
    """How the command failed, with the end of its output."""


class UntilCommand:
    """The `until:` command, run in the agent's folder between two cycles."""

    def __init__(self, command: tuple[str, ...], agent: AgentSpec, world: SupervisorPorts) -> None:
        self._command, self._agent, self._ports = command, agent, world

    def ask(self) -> UntilResult:
        """Run the command, and return its verdict."""
        if not self._command:
            return UntilResult()
        try:
            child = self._ports.processes.start(
                self._command,
                prompt="",
                environment=self._agent.environment,
                folder=self._agent.folder,
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
                # Closing the output ends the command and everything it started.
                if stops():
                    return UntilResult(UNTIL_STOPPED)
                if self._ports.elapsed() - began > UNTIL_SECONDS:
                    return self._make_failure(f"took longer than {UNTIL_SECONDS:g} s", output)
        if child.code == 0:
            return UntilResult("passed")
        errors = child.errors.encode("utf-8", "replace").splitlines()
        return self._make_failure(f"exited with {child.code}", [*output, *errors])

    def _make_failure(self, how: str, output: Iterable[bytes] = ()) -> UntilResult:
        command = to_one_line(shlex.join(self._command), UNTIL_CHARACTERS)
        text = b"\n".join(line.rstrip() for line in output).decode("utf-8", "replace").strip()
        # Redact before truncating, because a truncated secret would not be recognized.
        text = self._ports.store.redaction.text(text[-UNTIL_CHARACTERS - MARGIN_CHARACTERS :])
        tail = text[-UNTIL_CHARACTERS:].splitlines()[-UNTIL_LINES:]
        return UntilResult("failed", render_failure(command, how, list(map(strip_invisible, tail))))
