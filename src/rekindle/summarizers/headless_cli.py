"""Summarize with a model: run a CLI once, without tools, hooks or a saved session."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from rekindle.documents.launches.launch_types import (
    FinalReport,
    UsageReport,
)
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Persona
from rekindle.documents.summaries import summary
from rekindle.errors import (
    RekindleError,
    StoppedError,
    SummaryError,
    translate_os_errors,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import SUMMARY_SECONDS
from rekindle.policy.summaries.summary_request import SummaryRequest
from rekindle.ports import (
    Harness,
    Processes,
    ProcessHandle,
)
from rekindle.system.files import durable_files
from rekindle.system.processes import program_search
from rekindle.thresholds.supervision import TICK_SECONDS
from rekindle.thresholds.texts import REASON_CHARACTERS, SUMMARY_OUTPUT_BYTES


class HeadlessSummarizer(msgspec.Struct, frozen=True, kw_only=True):
    """Summarizer that asks a CLI, with its settings and limits."""

    harness: Harness
    processes: Processes
    scratch: Path
    """Folder in which Rekindle creates an empty folder for each question.

    A CLI may follow instructions in the files around it, so it starts in an empty folder.
    """
    environment: Mapping[str, str]
    program: tuple[str, ...] = ()
    persona: Persona = Persona()
    words: str = ""
    """Text of the persona's system prompt, placed before Rekindle's own instructions."""
    usd: float | None = None
    """Maximum cost of a summary in dollars, or None for no limit."""
    seconds: float = SUMMARY_SECONDS
    elapsed: Callable[[], float] = time.monotonic
    stops: Callable[[], bool] = bool
    """Function that returns whether a stop was requested. A stop ends the wait for an answer."""

    def ask(self, request: SummaryRequest) -> OneShotAnswer:
        """Return the answer to a request.

        Raises:
            SummaryError: The CLI could not be started, failed, or took too long. The error
                includes the cost so far, if the CLI reported it.
            StoppedError: A stop was requested before the answer arrived.
        """
        left = None if self.usd is None else self.usd - request.spent
        if left is not None and left <= 0:
            raise SummaryError("the budget for summaries has been spent")
        with (
            translate_os_errors(self.scratch),
            TemporaryDirectory(dir=self.scratch, prefix="q-", ignore_cleanup_errors=True) as folder,
        ):
            return self._run_question(request, Path(folder), left)

    def _run_question(
        self, request: SummaryRequest, folder: Path, left: float | None
    ) -> OneShotAnswer:
        question = OneShotQuestion(
            program=self.program,
            scratch=str(folder),
            persona=self.persona,
            instructions=f"{self.words.strip()}\n\n{request.instructions}".lstrip(),
            schema=request.schema or summary.make_schema(request.kind),
            usd_left=left,
        )
        try:
            command = self.harness.ask(question)
            for name, text in command.files.items():
                durable_files.replace_file(folder / name, text.encode())
            child = self.processes.start(
                command.argv if self.program else program_search.resolve_command(command.argv),
                prompt=request.prompt,
                environment={**self.environment, **command.environment},
                folder=str(folder),
            )
        except RekindleError as error:
            raise SummaryError(str(error), hint=error.hint or self.harness.INSTALL) from error
        lines: list[bytes] = []
        fault = self._read_output(child, lines)
        answer = None if fault else self.harness.answer(lines)
        if answer is None:
            last_words = (
                to_one_line(child.errors, REASON_CHARACTERS) or f"it exited with code {child.code}"
            )
            usd, tokens = self._read_cost(lines)
            words = f"{self.harness.NAME} {fault or f'gave no answer: {last_words}'}"
            raise SummaryError(words, usd=usd, tokens=tokens)
        return answer

    def _read_output(self, child: ProcessHandle, lines: list[bytes]) -> str:
        """Read the output. On a timeout, end the program and everything that it started.

        Return the reason why the output cannot be used, or an empty string.

        Raises:
            StoppedError: A stop was requested.
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
                    return f"printed more than {SUMMARY_OUTPUT_BYTES:,} bytes"
        return ""

    def _read_cost(self, lines: list[bytes]) -> tuple[float, int]:
        """Return what a failed answer cost, in dollars and tokens, if the CLI reported it."""
        used: dict[str, int] = {}
        for number, line in enumerate(lines):
            for item in self.harness.read_stream(line):
                if isinstance(item, FinalReport):
                    return item.usd or 0.0, item.tokens or sum(used.values())
                if isinstance(item, UsageReport):
                    used[item.turn or str(number)] = item.usage.tokens + item.usage.written
        return 0.0, sum(used.values())
