"""Passages of a transcript's lines, put together to turns."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from rekindle.documents.identity import visible
from rekindle.documents.launch import Called, Compacted, Said, Used, Warned
from rekindle.documents.transcript import (
    Asked,
    Call,
    Cursor,
    Gave,
    Passage,
    Result,
    Turn,
    Who,
    beginning,
    both_ends,
    instant,
    thread_name,
)
from rekindle.thresholds.texts import (
    CALLS_KEPT,
    MARGIN_CHARACTERS,
    OPEN_CHARACTERS,
    OPEN_KEPT,
    SHOWN_CHARACTERS,
    TEXT_CHARACTERS,
)

_MODEL = re.compile(r"[\w.:/@\[\]-]{1,80}\Z", re.ASCII)


class _Call:
    def __init__(self, called: Called) -> None:
        self.called = called
        self.ok: bool | None = None
        self.text: str | None = None

    def made(self, *, over: bool) -> Call:
        if self.ok is None and not over:
            result: Result = "open"
        elif self.ok is None and self.text is None:
            result = "unknown"
        else:
            result = "failed" if self.ok is False else "ok"
        return Call(visible(self.called.tool), visible(self.called.about), result, self.text or "")


class _Turn:
    """A turn to which something may still be added."""

    def __init__(
        self, begins: Cursor, who: Who, first: Passage, grew: Callable[[int], None]
    ) -> None:
        """`grew` is told of every character that is put into it, and taken out."""
        self.begins, self.who, self._grew = begins, who, grew
        self.message, self.at, self.thread = first.message, first.at, first.thread
        self.compacted = isinstance(first.what, Compacted)
        self.is_told_again = first.anew
        self.over = who != "agent"
        self.used: Used | None = None
        self._size = 0
        self.clear()

    def clear(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[str, _Call] = {}
        self._said = 0
        self._grow(-self._size)

    def _grow(self, by: int) -> None:
        self._size += by
        self._grew(by)

    def say(self, text: str) -> None:
        limit = TEXT_CHARACTERS + MARGIN_CHARACTERS
        if text and self._said <= limit:
            self.texts.append(visible(text[: limit + 1]))
            self._said += len(self.texts[-1]) + 1
            self._grow(len(self.texts[-1]))

    def call(self, called: Called) -> None:
        if len(self.calls) < CALLS_KEPT and called.call not in self.calls:
            self.calls[called.call] = _Call(called)
            self._grow(len(called.tool) + len(called.about))

    def give(self, gave: Gave) -> None:
        call = self.calls[gave.call]
        call.ok = gave.ok if gave.ok is not None else call.ok
        if gave.text or gave.ok is None:
            limit = SHOWN_CHARACTERS + 2 * MARGIN_CHARACTERS
            before = len(call.text or "")
            call.text = visible(both_ends(gave.text, limit))
            self._grow(len(call.text) - before)
        elif call.text is None:
            call.text = ""

    def made(self) -> Turn:
        usage = self.used.usage if self.used else None
        return Turn(
            number=self.begins.number,
            who=self.who,
            at=instant(self.at),
            thread=thread_name(self.thread),
            text=beginning("\n".join(self.texts).strip(), TEXT_CHARACTERS + MARGIN_CHARACTERS),
            calls=tuple(call.made(over=self.over) for call in self.calls.values()),
            read=usage.tokens if usage else 0,
            written=usage.written if usage else 0,
            model=usage.model if usage and _MODEL.match(usage.model) else "",
            compacted=self.compacted,
        )


class Narration:
    """Puts passages together to turns, with no more in memory than the turns that are not over."""

    def __init__(self, cursor: Cursor = Cursor()) -> None:  # noqa: B008 - it is frozen
        self._number = cursor.number
        self._compaction = cursor.compaction
        self._open: deque[_Turn] = deque()
        self._answers: dict[str, _Turn] = {}
        """The last answer of each thread, as long as it is open."""
        self._size = 0

    def take(self, passages: Iterable[Passage], offset: int) -> Iterator[Turn]:
        """Add the passages of the line that begins at `offset`; yields the turns that are over."""
        for passage in passages:
            self._add(passage, offset)
        while self._open and (self._open[0].over or self._is_too_much()):
            turn = self._open.popleft()
            turn.over = True
            if self._answers.get(turn.thread) is turn:
                del self._answers[turn.thread]
            yield turn.made()
            turn.clear()

    def rest(self) -> Iterator[Turn]:
        """The turns that are not over, as they stand."""
        return (turn.made() for turn in self._open)

    def cursor(self, offset: int) -> Cursor:
        """Where to read on, after all lines up to `offset`."""
        if self._open:
            return self._open[0].begins
        return Cursor(offset, self._number, self._compaction)

    def _add(self, passage: Passage, offset: int) -> None:
        match passage.what:
            case Asked():
                self._begin("person", passage, offset).say(passage.what.text)
                self._settle(passage.thread)
            case Compacted():
                self._compact(passage, offset)
            case Warned():
                self._begin("cli", passage, offset).say(passage.what.text)
            case Gave():
                self._give(passage.thread, passage.what)
            case Said():
                self._answer(passage, offset).say(passage.what.text)
            case Called():
                self._answer(passage, offset).call(passage.what)
            case Used():
                turn = self._answer(passage, offset)
                if passage.message or turn.used is None:
                    turn.used = passage.what

    def _begin(self, who: Who, passage: Passage, offset: int) -> _Turn:
        begins = Cursor(offset, self._number, self._compaction)
        turn = _Turn(begins, who, passage, self._grew)
        self._number += 1
        self._open.append(turn)
        return turn

    def _compact(self, passage: Passage, offset: int) -> None:
        if passage.message and passage.message == self._compaction:
            return
        self._begin("cli", passage, offset)
        self._compaction = passage.message
        self._settle(passage.thread)

    def _is_too_much(self) -> bool:
        return len(self._open) > OPEN_KEPT or self._size > OPEN_CHARACTERS

    def _grew(self, by: int) -> None:
        self._size += by

    def _settle(self, thread: str) -> None:
        """An answer that waits for no tool is over when something else follows it.

        One that may be told again may have more in it then: it is over with the next answer.
        """
        last = self._answers.get(thread)
        if (
            last
            and not last.is_told_again
            and all(call.text is not None for call in last.calls.values())
        ):
            last.over = True

    def _answer(self, passage: Passage, offset: int) -> _Turn:
        last = self._answers.get(passage.thread)
        if last is not None and _goes_on(last, passage):
            if passage.anew:
                last.clear()
            return last
        # Where the main thread goes on, its sub-agents have reported.
        for answer in [last, *(() if passage.thread else self._answers.values())]:
            if answer is not None:
                answer.over = True
        turn = self._begin("agent", passage, offset)
        self._answers[passage.thread] = turn
        return turn

    def _give(self, thread: str, gave: Gave) -> None:
        """To the call that it is of, also where the next answer has begun since."""
        for turn in reversed(self._open):
            if turn.thread == thread and gave.call in turn.calls:
                turn.give(gave)
                return


def _goes_on(last: _Turn, passage: Passage) -> bool:
    """Whether a passage is of the same answer as the one before."""
    if last.over:
        return False
    if passage.message:
        return passage.message == last.message
    # Of a CLI that does not say: what it has counted closes an answer.
    return last.used is None or isinstance(passage.what, Used)
