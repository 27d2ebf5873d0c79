"""Ask another persona to verify that the work is done before the run ends."""

import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rekindle.documents import events
from rekindle.documents.launches.launch_types import LAUNCH_VARIABLE, LaunchSpec, ProgramCommand
from rekindle.documents.launches.one_shot import ONE_SHOT_VARIABLE
from rekindle.errors import AgentError, RekindleError, StoppedError
from rekindle.flows.launches.launch_access import fetch_access
from rekindle.flows.launches.sandboxed_start import start_program
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.operator.stop_check import StopCheck
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.end_review import parse_review_verdict, render_review_prompt
from rekindle.ports import ProcessHandle
from rekindle.system.files import durable_files
from rekindle.system.processes import program_search
from rekindle.thresholds.supervision import REVIEW_SECONDS, STOP_SECONDS, TICK_SECONDS
from rekindle.thresholds.texts import (
    DID_CHARACTERS,
    MARGIN_CHARACTERS,
    SUMMARY_OUTPUT_BYTES,
    UNTIL_CHARACTERS,
)


class EndReviewer:
    """Verifies a reported end in a separate session that has no hooks and writes no relay."""

    def __init__(self, reviewer: Callable[[], AgentSpec], world: SupervisorPorts) -> None:
        """Create a reviewer. `reviewer` returns the agent with the reviewing persona and CLI."""
        self._reviewer, self._ports = reviewer, world

    def make(self, number: int, relay: str, spent: RunSpending) -> events.ReviewMade:
        """Return the review of a cycle. `spent` is the run's spending so far.

        Raises:
            StoppedError: The operator stopped the agent. The review is repeated later.
        """
        began, after, persona = self._ports.elapsed(), spent, ""
        verdict: str = "unavailable"
        try:
            session = ReviewSession(self._reviewer(), self._ports, spent)
            persona = session.reviewer.persona_name
            try:
                verdict, words = parse_review_verdict(session.answer(relay))
            finally:
                after = session.meter.spent(ended=True)
        except StoppedError:
            raise
        except RekindleError as error:
            words = str(error)
        # Redact before truncating: a truncated secret may not be recognized.
        redacted = self._ports.store.redaction.text(words[: UNTIL_CHARACTERS + MARGIN_CHARACTERS])
        return events.ReviewMade(
            ts=self._ports.clock(),
            cycle=number,
            persona=persona,
            verdict=verdict,
            words=strip_invisible(redacted[:UNTIL_CHARACTERS]),
            usd=after.usd - spent.usd,
            tokens=after.tokens - spent.tokens,
            seconds=self._ports.elapsed() - began,
            run_usd=after.usd,
            run_tokens=after.tokens,
            unpriced=after.unpriced,
            is_estimated=after.is_estimated,
        )


class ReviewSession:
    def __init__(self, reviewer: AgentSpec, world: SupervisorPorts, spent: RunSpending) -> None:
        self.reviewer, self._ports, self._spent = reviewer, world, spent
        cap = reviewer.budget.usd if reviewer.budget else None
        self._left = None if cap is None else max(cap - spent.usd, 0.0)
        self.meter = SpendMeter(spent, reviewer.prices, world.clock().date(), self._left)

    def answer(self, relay: str) -> str:
        """Return the reviewer's answer.

        Raises:
            AgentError: The reviewer gave no answer, or the run's budget is spent.
            StoppedError: The operator stopped the agent.
        """
        now = self._ports.clock()
        if words := budget.describe_reached_cap(
            self._spent, self.reviewer.budget, began=None, now=now
        ):
            raise AgentError(words)
        child, lines = self._run(render_review_prompt(self.reviewer.task, relay))
        answer = self.reviewer.harness.answer(lines) if child.code == 0 else None
        if answer is None:
            reason = to_one_line(child.errors, DID_CHARACTERS) or f"exit code {child.code}"
            raise AgentError(f"{self.reviewer.harness.NAME} gave no answer: {reason}")
        return answer.text

    def _run(self, prompt: str) -> tuple[ProcessHandle, list[bytes]]:
        reviewer, processes = self.reviewer, self._ports.processes
        mark, boot, uptime = uuid.uuid4().hex, processes.boot(), processes.uptime()
        command = self._command()
        own = {
            LAUNCH_VARIABLE: mark,
            ONE_SHOT_VARIABLE: "1",  # installed hooks ignore this session
            "REKINDLE_FOLDER": str(self._ports.store.folder(reviewer.name).path),
            "REKINDLE_AGENT": reviewer.name,
        }
        environment = {**reviewer.environment, **command.environment, **own}
        argv = command.argv
        if not reviewer.program:
            argv = program_search.resolve_command(argv, environment.get("PATH"))
        try:
            child = start_program(
                processes,
                reviewer,
                argv,
                prompt=prompt,
                environment=environment,
                access=fetch_access(reviewer, mark),
            )
            return child, self._read(child)
        finally:
            processes.end_launch_processes(mark, boot=boot, uptime=uptime, patience=STOP_SECONDS)

    def _command(self) -> ProgramCommand:
        reviewer = self.reviewer
        start = LaunchSpec(
            session=str(uuid.uuid4()) if reviewer.harness.CAN.names_sessions else "",
            scratch=reviewer.scratch,
            persona=reviewer.persona,
            instructions=reviewer.instructions,
            program=reviewer.program,
            usd_left=self._left,
            protected=reviewer.protected,
            folder=reviewer.folder,
            path=reviewer.path,
        )
        command = reviewer.harness.command(start)
        for name, text in command.files.items():
            durable_files.replace_file(Path(reviewer.scratch) / name, text.encode())
        return command

    def _read(self, child: ProcessHandle) -> list[bytes]:
        world, began, size = self._ports, self._ports.elapsed(), 0
        stops = StopCheck(world.store, self.reviewer.name, world.interrupted, world.elapsed)
        lines: list[bytes] = []
        with closing(child.follow(TICK_SECONDS)) as output:
            for line in output:
                if line is not None:
                    lines.append(line)
                    size += len(line)
                    for seen in self.reviewer.harness.read_stream(line):
                        self.meter.take(seen)
                # Closing the stream ends the reviewer and everything that it started.
                if stops():
                    raise StoppedError
                if world.elapsed() - began > REVIEW_SECONDS:
                    raise AgentError(f"the review took longer than {REVIEW_SECONDS:g} s")
                if size > SUMMARY_OUTPUT_BYTES:
                    lines = lines[len(lines) // 2 :]
                    size = sum(map(len, lines))
        return lines
