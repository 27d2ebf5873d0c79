"""A summary by a model: a CLI is asked once, without tools, hooks or a session that is kept."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from rekindle.documents import summary
from rekindle.documents.identity import one_line
from rekindle.documents.manifest import Persona
from rekindle.documents.question import Answer, Question
from rekindle.errors import RekindleError, SummaryError
from rekindle.policy.settings import SUMMARY_SECONDS
from rekindle.policy.summarize import INSTRUCTIONS, Request
from rekindle.ports import Child, Harness, Processes
from rekindle.system import disk

_TICK_SECONDS = 0.25
_OUTPUT_BYTES = 16 * 1024 * 1024
"""A program that prints more than this does not answer."""


class Headless(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, and by whom."""

    harness: Harness
    processes: Processes
    scratch: Path
    """An empty folder: a CLI may take the files of the one that it is started in for orders."""
    environment: Mapping[str, str]
    program: tuple[str, ...] = ()
    persona: Persona = Persona()
    words: str = ""
    """The text of the persona's system prompt; ours follows it."""
    usd: float | None = None
    """What an answer may cost."""
    seconds: float = SUMMARY_SECONDS
    elapsed: Callable[[], float] = time.monotonic

    def ask(self, request: Request) -> Answer:
        """The answer to a request.

        Raises:
            SummaryError: There is none: it could not be started, failed, or took too long.
        """
        question = Question(
            program=self.program,
            scratch=str(self.scratch),
            persona=self.persona,
            instructions=f"{self.words.strip()}\n\n{INSTRUCTIONS}".lstrip(),
            schema=summary.schema(request.kind),
            usd_left=self.usd,
        )
        try:
            command = self.harness.ask(question)
            for name, text in command.files.items():
                disk.replace(self.scratch / name, text.encode())
            child = self.processes.start(
                command.argv,
                prompt=request.prompt,
                environment={**self.environment, **command.environment},
                folder=str(self.scratch),
            )
        except RekindleError as error:
            raise SummaryError(str(error), hint=error.hint or self.harness.INSTALL) from error
        lines = self._lines(child)
        found = self.harness.answer(lines)
        if found is None:
            told = one_line(child.errors, 300) or f"it ended with {child.code}"
            raise SummaryError(f"{self.harness.NAME} gave no answer: {told}")
        return found

    def _lines(self, child: Child) -> list[bytes]:
        """All that it prints; it is ended, with all that it started, when it takes too long."""
        began, lines, size = self.elapsed(), [], 0
        with closing(child.follow(_TICK_SECONDS)) as output:
            for line in output:
                if line is not None:
                    lines.append(line)
                    size += len(line)
                if self.elapsed() - began > self.seconds:
                    raise SummaryError(f"{self.harness.NAME} took longer than {self.seconds:g} s")
                if size > _OUTPUT_BYTES:
                    raise SummaryError(f"{self.harness.NAME} printed without end")
        return lines
