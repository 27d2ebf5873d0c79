"""Assemble turns from the passages in a transcript's lines."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    ToolCallStarted,
    UsageReport,
    WarningReport,
)
from rekindle.documents.transcripts.turns import (
    CallResult,
    Passage,
    PromptText,
    Speaker,
    ToolCall,
    ToolResult,
    TranscriptCursor,
    Turn,
    cut_end,
    cut_middle,
    normalize_time,
    render_thread_name,
)
from rekindle.formats.identifiers import strip_invisible
from rekindle.thresholds.texts import (
    CALLS_KEPT,
    MARGIN_CHARACTERS,
    OPEN_CHARACTERS,
    OPEN_KEPT,
    SHOWN_CHARACTERS,
    TEXT_CHARACTERS,
)

_MODEL = re.compile(r"[\w.:/@\[\]-]{1,80}\Z", re.ASCII)


class _OpenCall:
    def __init__(self, called: ToolCallStarted) -> None:
        self.called = called
        self.ok: bool | None = None
        self.text: str | None = None

    def made(self, *, over: bool) -> ToolCall:
        if self.ok is None and not over:
            result: CallResult = "open"
        elif self.ok is None and self.text is None:
            result = "unknown"
        else:
            result = "failed" if self.ok is False else "ok"
        return ToolCall(
            strip_invisible(self.called.tool),
            strip_invisible(self.called.about),
            result,
            self.text or "",
        )


class _OpenTurn:
    """A turn that may still receive more passages."""

    def __init__(
        self, begins: TranscriptCursor, who: Speaker, first: Passage, grew: Callable[[int], None]
    ) -> None:
        """Start a turn. `grew` is called with each change in the turn's size, in characters."""
        self.begins, self.who, self._add_size = begins, who, grew
        self.message, self.at, self.thread = first.message, first.at, first.thread
        self.compacted = isinstance(first.what, CompactionReport)
        self.may_repeat = first.repeats_message
        self.over = who != "agent"
        self.used: UsageReport | None = None
        self._size = 0
        self.clear()

    def clear(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[str, _OpenCall] = {}
        self._said = 0
        self._report_growth(-self._size)

    def _report_growth(self, by: int) -> None:
        self._size += by
        self._add_size(by)

    def say(self, text: str) -> None:
        limit = TEXT_CHARACTERS + MARGIN_CHARACTERS
        if text and self._said <= limit:
            self.texts.append(strip_invisible(text[: limit + 1]))
            self._said += len(self.texts[-1]) + 1
            self._report_growth(len(self.texts[-1]))

    def call(self, called: ToolCallStarted) -> None:
        if len(self.calls) < CALLS_KEPT and called.call not in self.calls:
            self.calls[called.call] = _OpenCall(called)
            self._report_growth(len(called.tool) + len(called.about))

    def give(self, gave: ToolResult) -> None:
        call = self.calls[gave.call]
        call.ok = gave.ok if gave.ok is not None else call.ok
        if gave.text or gave.ok is None:
            limit = SHOWN_CHARACTERS + 2 * MARGIN_CHARACTERS
            before = len(call.text or "")
            call.text = strip_invisible(cut_middle(gave.text, limit))
            self._report_growth(len(call.text) - before)
        elif call.text is None:
            call.text = ""

    def made(self) -> Turn:
        usage = self.used.usage if self.used else None
        return Turn(
            number=self.begins.number,
            who=self.who,
            at=normalize_time(self.at),
            thread=render_thread_name(self.thread),
            text=cut_end("\n".join(self.texts).strip(), TEXT_CHARACTERS + MARGIN_CHARACTERS),
            calls=tuple(call.made(over=self.over) for call in self.calls.values()),
            read=usage.tokens if usage else 0,
            written=usage.written if usage else 0,
            model=usage.model if usage and _MODEL.match(usage.model) else "",
            compacted=self.compacted,
        )


class TurnBuilder:
    """Assembles passages into turns, and keeps only unfinished turns in memory."""

    def __init__(self, cursor: TranscriptCursor = TranscriptCursor()) -> None:  # noqa: B008 - the default is frozen
        self._number = cursor.number
        self._compaction = cursor.compaction
        self._open: deque[_OpenTurn] = deque()
        self._answers: dict[str, _OpenTurn] = {}
        """Each thread's last open answer."""
        self._size = 0

    def take(self, passages: Iterable[Passage], offset: int) -> Iterator[Turn]:
        """Add the passages from the line at `offset`, and yield the turns that this finishes."""
        for passage in passages:
            self._add_passage(passage, offset)
        while self._open and (self._open[0].over or self._is_too_large()):
            turn = self._open.popleft()
            turn.over = True
            if self._answers.get(turn.thread) is turn:
                del self._answers[turn.thread]
            yield turn.made()
            turn.clear()

    def rest(self) -> Iterator[Turn]:
        """Return the unfinished turns as they are now."""
        return (turn.made() for turn in self._open)

    def cursor(self, offset: int) -> TranscriptCursor:
        """Return the position from which to continue after all lines before `offset` were added."""
        if self._open:
            return self._open[0].begins
        return TranscriptCursor(offset, self._number, self._compaction)

    def _add_passage(self, passage: Passage, offset: int) -> None:
        match passage.what:
            case PromptText():
                self._begin_turn("person", passage, offset).say(passage.what.text)
                self._close_answer(passage.thread)
            case CompactionReport():
                self._add_compaction(passage, offset)
            case WarningReport():
                self._begin_turn("cli", passage, offset).say(passage.what.text)
            case ToolResult():
                self._add_result(passage.thread, passage.what)
            case AssistantText():
                self._begin_answer(passage, offset).say(passage.what.text)
            case ToolCallStarted():
                self._begin_answer(passage, offset).call(passage.what)
            case UsageReport():
                turn = self._begin_answer(passage, offset)
                if passage.message or turn.used is None:
                    turn.used = passage.what

    def _begin_turn(self, who: Speaker, passage: Passage, offset: int) -> _OpenTurn:
        begins = TranscriptCursor(offset, self._number, self._compaction)
        turn = _OpenTurn(begins, who, passage, self._add_size)
        self._number += 1
        self._open.append(turn)
        return turn

    def _add_compaction(self, passage: Passage, offset: int) -> None:
        if passage.message and passage.message == self._compaction:
            return
        self._begin_turn("cli", passage, offset)
        self._compaction = passage.message
        self._close_answer(passage.thread)

    def _is_too_large(self) -> bool:
        return len(self._open) > OPEN_KEPT or self._size > OPEN_CHARACTERS

    def _add_size(self, by: int) -> None:
        self._size += by

    def _close_answer(self, thread: str) -> None:
        """Finish a thread's last answer, unless it is waiting for a tool.

        An answer that the CLI may repeat with more content stays open until the next answer.
        """
        last = self._answers.get(thread)
        if (
            last
            and not last.may_repeat
            and all(call.text is not None for call in last.calls.values())
        ):
            last.over = True

    def _begin_answer(self, passage: Passage, offset: int) -> _OpenTurn:
        last = self._answers.get(passage.thread)
        if last is not None and _continues_answer(last, passage):
            if passage.repeats_message:
                last.clear()
            return last
        # The main thread continues only after its sub-agents have reported.
        for answer in [last, *(() if passage.thread else self._answers.values())]:
            if answer is not None:
                answer.over = True
        turn = self._begin_turn("agent", passage, offset)
        self._answers[passage.thread] = turn
        return turn

    def _add_result(self, thread: str, gave: ToolResult) -> None:
        """Add a result to its tool call, even if the next answer has already started."""
        for turn in reversed(self._open):
            if turn.thread == thread and gave.call in turn.calls:
                turn.give(gave)
                return


def _continues_answer(last: _OpenTurn, passage: Passage) -> bool:
    """Return whether a passage belongs to the same answer as the previous passage."""
    if last.over:
        return False
    if passage.message:
        return passage.message == last.message
    # Without message ids, a usage report ends an answer.
    return last.used is None or isinstance(passage.what, UsageReport)
