"""A review: another persona verifies a reported end, in one session, before it counts."""

import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rekindle.documents import event as events
from rekindle.documents.identity import one_line, visible
from rekindle.documents.launch import MARK, Command, Start
from rekindle.documents.question import ASKED
from rekindle.errors import AgentError, RekindleError, StoppedError
from rekindle.flows.meter import Meter
from rekindle.flows.stopping import Stopping
from rekindle.flows.world import Agent, World
from rekindle.policy import budget
from rekindle.policy.budget import Spent
from rekindle.policy.review import ask_for_review, read_verdict
from rekindle.ports import Child
from rekindle.system import disk, programs
from rekindle.thresholds.running import REVIEW_SECONDS, STOP_SECONDS, TICK_SECONDS
from rekindle.thresholds.texts import (
    DID_CHARACTERS,
    MARGIN_CHARACTERS,
    SUMMARY_OUTPUT_BYTES,
    UNTIL_CHARACTERS,
)


class Review:
    """One session of a reviewer, in the agent's folder, without a draft and without hooks."""

    def __init__(self, reviewer: Callable[[], Agent], world: World) -> None:
        """`reviewer` returns the agent as it is with the reviewer's persona and CLI."""
        self._reviewer, self._world = reviewer, world

    def make(self, number: int, relay: str, spent: Spent) -> events.ReviewMade:
        """Return the review of a cycle; `spent` is what the run has spent before.

        Raises:
            StoppedError: The operator stops the agent: the review is made again later.
        """
        began, after, persona = self._world.elapsed(), spent, ""
        verdict: str = "unavailable"
        try:
            session = ReviewSession(self._reviewer(), self._world, spent)
            persona = session.reviewer.persona_name
            try:
                verdict, words = read_verdict(session.answer(relay))
            finally:
                after = session.meter.spent(ended=True)
        except StoppedError:
            raise
        except RekindleError as error:
            words = str(error)
        # Secrets are redacted before the cut: half a secret is not recognized.
        kept = self._world.store.redaction.text(words[: UNTIL_CHARACTERS + MARGIN_CHARACTERS])
        return events.ReviewMade(
            ts=self._world.clock(),
            cycle=number,
            persona=persona,
            verdict=verdict,
            words=visible(kept[:UNTIL_CHARACTERS]),
            usd=after.usd - spent.usd,
            tokens=after.tokens - spent.tokens,
            seconds=self._world.elapsed() - began,
            run_usd=after.usd,
            run_tokens=after.tokens,
            unpriced=after.unpriced,
        )


class ReviewSession:
    """One process of a reviewer's CLI."""

    def __init__(self, reviewer: Agent, world: World, spent: Spent) -> None:
        self.reviewer, self._world, self._spent = reviewer, world, spent
        cap = reviewer.budget.usd if reviewer.budget else None
        self._left = None if cap is None else max(cap - spent.usd, 0.0)
        self.meter = Meter(spent, reviewer.prices, self._left)

    def answer(self, relay: str) -> str:
        """Return what the reviewer answers.

        Raises:
            AgentError: It gave no answer, or the budget of the run is spent.
            StoppedError: The operator stops the agent.
        """
        now = self._world.clock()
        if words := budget.exhausted(self._spent, self.reviewer.budget, began=None, now=now):
            raise AgentError(words)
        child, lines = self._run(ask_for_review(self.reviewer.task, relay))
        answer = self.reviewer.harness.answer(lines) if child.code == 0 else None
        if answer is None:
            told = one_line(child.errors, DID_CHARACTERS) or f"exit code {child.code}"
            raise AgentError(f"{self.reviewer.harness.NAME} gave no answer: {told}")
        return answer.text

    def _run(self, prompt: str) -> tuple[Child, list[bytes]]:
        reviewer, processes = self.reviewer, self._world.processes
        mark, boot, uptime = uuid.uuid4().hex, processes.boot(), processes.uptime()
        command = self._command()
        own = {
            MARK: mark,
            ASKED: "1",  # hooks that are installed report no session of the agent
            "REKINDLE_FOLDER": str(self._world.store.folder(reviewer.name).path),
            "REKINDLE_AGENT": reviewer.name,
        }
        environment = {**reviewer.environment, **command.environment, **own}
        argv = command.argv
        if not reviewer.program:
            argv = programs.resolve(argv, environment.get("PATH"))
        try:
            child = processes.start(
                argv, prompt=prompt, environment=environment, folder=reviewer.folder
            )
            return child, self._read(child)
        finally:
            processes.end_marked(mark, boot=boot, uptime=uptime, patience=STOP_SECONDS)

    def _command(self) -> Command:
        reviewer = self.reviewer
        start = Start(
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
            disk.replace(Path(reviewer.scratch) / name, text.encode())
        return command

    def _read(self, child: Child) -> list[bytes]:
        world, began, size = self._world, self._world.elapsed(), 0
        stops = Stopping(world.store, self.reviewer.name, world.interrupted, world.elapsed)
        lines: list[bytes] = []
        with closing(child.follow(TICK_SECONDS)) as output:
            for line in output:
                if line is not None:
                    lines.append(line)
                    size += len(line)
                    for seen in self.reviewer.harness.read_stream(line):
                        self.meter.take(seen)
                # Closing the output ends the reviewer with everything that it started.
                if stops():
                    raise StoppedError
                if world.elapsed() - began > REVIEW_SECONDS:
                    raise AgentError(f"it took longer than {REVIEW_SECONDS:g} s")
                if size > SUMMARY_OUTPUT_BYTES:
                    lines = lines[len(lines) // 2 :]
                    size = sum(map(len, lines))
        return lines
