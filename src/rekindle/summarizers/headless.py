"""A summary by a model: a CLI is asked once, without tools, hooks or a session that is kept."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from rekindle.documents import summary
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Finished, Used
from rekindle.documents.manifest import Persona
from rekindle.documents.question import Answer, Question
from rekindle.errors import RekindleError, StoppedError, SummaryError, storing
from rekindle.policy.settings import SUMMARY_SECONDS
from rekindle.policy.summarize import Request
from rekindle.ports import Child, Harness, Processes
from rekindle.system import disk, programs
from rekindle.thresholds.running import TICK_SECONDS
from rekindle.thresholds.texts import REASON_CHARACTERS, SUMMARY_OUTPUT_BYTES


class Headless(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, and by whom."""

    harness: Harness
    processes: Processes
    scratch: Path
    """A folder for those of the questions, each of which begins empty.

    A CLI may take the files of the one that it is started in for orders.
    """
    environment: Mapping[str, str]
    program: tuple[str, ...] = ()
    persona: Persona = Persona()
    words: str = ""
    """The text of the persona's system prompt; ours follows it."""
    usd: float | None = None
    """What an answer may cost."""
    seconds: float = SUMMARY_SECONDS
    elapsed: Callable[[], float] = time.monotonic
    stops: Callable[[], bool] = bool
    """Whether somebody wants us to stop: no answer is waited for then."""

    def ask(self, request: Request) -> Answer:
        """The answer to a request.

        Raises:
            SummaryError: There is none: it could not be started, failed, or took too long. It says
                what that has cost, as far as the program has told.
            StoppedError: We are to stop, and have not waited for it.
        """
        left = None if self.usd is None else self.usd - request.spent
        if left is not None and left <= 0:
            raise SummaryError("what a summary may cost is spent")
        with (
            storing(self.scratch),
            TemporaryDirectory(dir=self.scratch, prefix="q-", ignore_cleanup_errors=True) as folder,
        ):
            return self._answer(request, Path(folder), left)

    def _answer(self, request: Request, folder: Path, left: float | None) -> Answer:
        question = Question(
            program=self.program,
            scratch=str(folder),
            persona=self.persona,
            instructions=f"{self.words.strip()}\n\n{request.instructions}".lstrip(),
            schema=request.schema or summary.schema(request.kind),
            usd_left=left,
        )
        try:
            command = self.harness.ask(question)
            for name, text in command.files.items():
                disk.replace(folder / name, text.encode())
            child = self.processes.start(
                command.argv if self.program else programs.resolve(command.argv),
                prompt=request.prompt,
                environment={**self.environment, **command.environment},
                folder=str(folder),
            )
        except RekindleError as error:
            raise SummaryError(str(error), hint=error.hint or self.harness.INSTALL) from error
        lines: list[bytes] = []
        fault = self._read(child, lines)
        found = None if fault else self.harness.answer(lines)
        if found is None:
            told = one_line(child.errors, REASON_CHARACTERS) or f"it ended with {child.code}"
            usd, tokens = self._cost(lines)
            words = f"{self.harness.NAME} {fault or f'gave no answer: {told}'}"
            raise SummaryError(words, usd=usd, tokens=tokens)
        return found

    def _read(self, child: Child, lines: list[bytes]) -> str:
        """Read all that it prints; it is ended, with all that it started, when it takes too long.

        Returns what is wrong with it, if anything is.

        Raises:
            StoppedError: We are to stop.
        """
        began, size = self.elapsed(), 0
        with closing(child.follow(TICK_SECONDS)) as output:
            for line in output:
                if line is not None:
                    lines.append(line)
                    size += len(line)
                if self.stops():
                    raise StoppedError
                if self.elapsed() - began > self.seconds:
                    return f"took longer than {self.seconds:g} s"
                if size > SUMMARY_OUTPUT_BYTES:
                    return "printed without end"
        return ""

    def _cost(self, lines: list[bytes]) -> tuple[float, int]:
        """What an answer that is none has cost, as far as its program has told."""
        used: dict[str, int] = {}
        for number, line in enumerate(lines):
            for seen in self.harness.read_stream(line):
                if isinstance(seen, Finished):
                    return seen.usd or 0.0, seen.tokens or sum(used.values())
                if isinstance(seen, Used):
                    used[seen.turn or str(number)] = seen.usage.tokens + seen.usage.written
        return 0.0, sum(used.values())
