"""The normal form of a transcript: turns, whichever CLI has written them down.

A harness makes passages of a line of its CLI's transcript. `Narration` puts them together to turns:
what a person asked, what the agent said and did and what came of it, what the CLI did by itself.
Turns are numbered from 1 and keep their number, however often a transcript is read.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal

import msgspec

from rekindle.documents.identity import STABLE_ID, one_line, visible
from rekindle.documents.jsontext import fingerprint
from rekindle.documents.launch import Called, Compacted, Said, Used, Warned

TEXT_CHARACTERS = 8_000
"""How much of what somebody said is kept."""
SHOWN_CHARACTERS = 2_000
"""How much of what a tool gave is kept: its beginning, and more of its end, which tells most."""
ABOUT_CHARACTERS = 200
"""How much of what a tool was given is kept."""
MARGIN_CHARACTERS = 1_000
"""What is kept beside a cut until secrets are redacted: half of one could not be told for one."""
CALLS_KEPT = 500
"""No answer has more tool calls; a file that says so must not fill the memory."""
OPEN_KEPT = 1_000
"""How many turns wait for one before them that is not over; the same."""
OPEN_CHARACTERS = 4_000_000
"""How much they may hold together; the same."""
CUT = "\n[…]\n"

Who = Literal["person", "agent", "cli"]
Result = Literal["ok", "failed", "open", "unknown"]
"""`open`: nothing came of it yet; `unknown`: the transcript goes on without having told."""


class Asked(msgspec.Struct, frozen=True):
    """Somebody has asked for something."""

    text: str


class Gave(msgspec.Struct, frozen=True):
    """What a tool call gave; its text and whether it went well may be told apart."""

    call: str
    ok: bool | None = None
    text: str = ""


What = Asked | Said | Called | Gave | Used | Compacted | Warned


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a turn, as a line of a transcript has it."""

    what: What
    at: str = ""
    """When, as the CLI writes it."""
    message: str = ""
    """The answer that it is a piece of; empty where the CLI does not say."""
    thread: str = ""
    """The sub-agent whose it is; empty: the main thread."""
    anew: bool = False
    """Its message is told again, whole, with this as its first piece."""


class Asides(msgspec.Struct, frozen=True):
    """Where a session's sub-agents have transcripts of their own."""

    folder: str
    name: str = "*.jsonl"
    """The pattern of their names."""
    deep: bool = False
    """They may be in folders of that one."""
    sign: str = ""
    """What the first line of theirs holds, where others fit the pattern too."""
    begins: Callable[[bytes], bytes] | None = None
    """Where theirs begin with a copy of the session's: what their first line says that the first
    line holds that is their own; empty: all are."""


class Call(msgspec.Struct, frozen=True):
    tool: str
    about: str
    result: Result
    shown: str = ""
    """What it gave."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int
    who: Who
    at: str = ""
    thread: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    read: int = 0
    """How much the model was given for it, in tokens."""
    written: int = 0
    model: str = ""
    compacted: bool = False
    """The CLI has put a summary in the place of all that was before."""

    def without_secrets(self, redacted: Callable[[str], str]) -> "Turn":
        """The turn as it may be kept: redacted first, and only then cut to its size."""
        calls = [
            msgspec.structs.replace(
                call,
                tool=redacted(call.tool),
                about=one_line(redacted(call.about), ABOUT_CHARACTERS),
                shown=_shortened(call.shown, redacted),
            )
            for call in self.calls
        ]
        return msgspec.structs.replace(
            self,
            text=_beginning(redacted(self.text), TEXT_CHARACTERS),
            calls=tuple(calls),
            model=redacted(self.model),
            thread=thread_name(redacted(self.thread)),
        )


class Cursor(msgspec.Struct, frozen=True):
    """Where to read on: at the first turn to which something may still be added."""

    offset: int = 0
    number: int = 1
    compaction: str = ""
    """The last one that was told: a CLI may tell of it again."""


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
            call.text = visible(_both_ends(gave.text, limit))
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
            text=_beginning("\n".join(self.texts).strip(), TEXT_CHARACTERS + MARGIN_CHARACTERS),
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


def _beginning(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rstrip() + CUT.rstrip()


def _shortened(shown: str, redacted: Callable[[str], str]) -> str:
    head, cut, tail = shown.partition(CUT)
    head, tail = redacted(head), redacted(tail)
    if not cut:
        return _both_ends(head, SHOWN_CHARACTERS)
    begins = SHOWN_CHARACTERS * 3 // 8
    return head[:begins] + CUT + tail[-(SHOWN_CHARACTERS - begins) :]


def _both_ends(text: str, limit: int) -> str:
    """The beginning and more of the end."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 8
    return text[:head] + CUT + text[-(limit - head) :]


def showing(turn: Turn, shown: int) -> Turn:
    """The turn with no more of what each tool gave."""
    if all(len(call.shown) <= shown for call in turn.calls):
        return turn
    calls = (
        msgspec.structs.replace(call, shown=_both_ends(call.shown, shown) if shown else "")
        for call in turn.calls
    )
    return msgspec.structs.replace(turn, calls=tuple(calls))


def render(turn: Turn) -> str:
    """A turn for people, and for models: whose it is in a line, then what was said and done."""
    lines = [f"[{turn.number}] {_time(turn.at)}{head(turn)}"]
    if turn.compacted:
        lines.append("    the conversation so far was compacted")
    lines += [f"    {line}" for line in turn.text.splitlines()]
    for call in turn.calls:
        about = one_line(call.about, ABOUT_CHARACTERS)
        lines.append(f"    > {call.tool} {about}".rstrip() + f": {call.result}")
        lines += [f"        {line}" for line in call.shown.splitlines()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def head(turn: Turn) -> str:
    """Whose it is, and how large."""
    whose = f"sub-agent {turn.thread}" if turn.thread else turn.who
    sizes = f" ({turn.model or 'model'}: {turn.read:,} read, {turn.written:,} written)"
    return f"{whose}{sizes if turn.read else ''}"


_MODEL = re.compile(r"[\w.:/@\[\]-]{1,80}\Z", re.ASCII)


def thread_name(thread: str) -> str:
    """The name of a sub-agent, which the CLI's file may give as any text."""
    if not thread or STABLE_ID.match(thread):
        return thread
    return f"thread-{fingerprint(thread.encode('utf-8', 'replace'))[:8]}"


def instant(at: str) -> str:
    """A time as CLIs write it, in UTC; empty, where it is none."""
    try:
        found = datetime.fromisoformat(at)
        aware = found if found.tzinfo else found.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return ""


def _time(at: str) -> str:
    """The minute of an instant as CLIs write it; nothing, where it is none."""
    day, _, time = at.partition("T")
    return f"{day} {time[:5]} " if time else ""
