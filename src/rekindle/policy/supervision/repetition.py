"""Detect an agent that repeats itself within a session.

A call repeats an earlier one if the tool, the input and the result are the same. Waiting is not
repetition: a tool that is made for waiting, a call whose input names a wait and that takes time,
a long call that succeeds or a pause between two calls ends every series. So does input to another
program, such as a key press, a sub-agent's work, and a result that differs. Times in a result do
not make it different. In the result of a failed call, only counts such as "3 failed" do, because
each failure may report another process id or temporary file.
"""

import re
from collections import deque
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    ToolCallStarted,
)
from rekindle.documents.transcripts.turns import Passage, PromptText, ToolResult
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.repetition_limits import (
    COMPACTION_CALLS,
    COMPACTIONS_MOST,
    COMPACTIONS_TOLD,
    NAMED_WAIT_SECONDS,
    PAUSE_SECONDS,
    REPEATED_CALLS,
    REPEATED_CALLS_KEPT,
    REPEATS_MOST,
    REPEATS_TOLD,
    WAITING_SECONDS,
)
from rekindle.thresholds.texts import ABOUT_CHARACTERS, TEXT_CHARACTERS

RepeatedPattern = Literal["call", "failure", "alternation", "message", "compaction"]

_WAITING_TOOL = re.compile(r"wait|output|stdin|poll|monitor|watch|sleep", re.IGNORECASE)
"""Names of tools that are made for waiting, such as TaskOutput, write_stdin or wait_agent."""
_INPUT = re.compile(
    r"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:press|scroll|click|swipe|tap|next|continue|step)"
    r"(?![a-z])|^key$|[Aa]gent|^Task$"
)
"""Names of tools and actions that enter something into another program or start a sub-agent."""
_NAMED_WAIT = re.compile(r"(?<![a-z])(?:sleep|wait|watch|tail|follow|poll|until)", re.IGNORECASE)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?|\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds?)\b"
)
_NUMBER = re.compile(
    r"\b(?=\w*\d)(?<![a-rt-z]s[=:])(?<![a-rt-z]s: )(?<!ed: )"
    r"(?!\d+ (?:[a-z]+ )?(?:fail\w+|pass\w+|of|[a-z]{4,}s)\b)\w+"
)
"""Numbers and names with digits, except counts, which have a plural or a result next to them."""


class Repetition(msgspec.Struct, frozen=True):
    """A pattern that the agent repeats."""

    pattern: RepeatedPattern
    count: int
    """Number of times in a row."""
    about: str = ""
    """The repeated calls or message, on one line."""

    @property
    def is_notable(self) -> bool:
        return self.count >= (COMPACTIONS_TOLD if self.pattern == "compaction" else REPEATS_TOLD)

    @property
    def is_over(self) -> bool:
        """Whether a fresh session must take over."""
        return self.count >= (COMPACTIONS_MOST if self.pattern == "compaction" else REPEATS_MOST)

    @property
    def has_boundary(self) -> bool:
        """Whether the pattern contains tool calls, after which a hook can stop the session."""
        return self.pattern in ("call", "failure", "alternation")

    def describe(self) -> str:
        match self.pattern:
            case "call":
                return (
                    f"the same call with the same result {self.count} times in a row: {self.about}"
                )
            case "failure":
                return f"the same call failed {self.count} times in a row: {self.about}"
            case "alternation":
                return f"the same calls in turn {self.count} times in a row: {self.about}"
            case "message":
                return f"the same message {self.count} times in a row: {self.about}"
            case "compaction":
                return f"{self.count} compactions in a row with hardly any work between them"


def render_notice(found: Repetition) -> str:
    """Return the message for the agent."""
    return (
        f"Rekindle: you repeat yourself: {found.describe()}. The same step gives the same result."
        " Find out why, and try something else, or write down what blocks you. If you are waiting"
        " for something, wait in one call that blocks. If this continues, Rekindle ends this"
        " session, and a fresh one takes over."
    )


class _Call(msgspec.Struct):
    tool: str
    about: str
    content: bytes
    began: str
    action: str
    """The action, if the tool has several, such as `computer` has."""
    ended: str = ""
    ok: bool | None = None
    is_provisional: bool = False

    def is_waiting(self) -> bool:
        """Return whether the call waits for something or changes another program's state."""
        if _WAITING_TOOL.search(self.tool):
            return True
        if self.ok is not False and (
            _INPUT.search(self.tool)
            or _INPUT.search(self.action)
            or b"tmux send-keys" in self.content
        ):
            return True
        seconds = _measure(self.began, self.ended)
        if self.ok is not False and seconds >= WAITING_SECONDS:
            return True
        return seconds >= NAMED_WAIT_SECONDS and bool(
            _NAMED_WAIT.search(self.content.decode("utf-8", "replace"))
        )

    def make_fingerprint(self, text: str) -> int:
        shown = _TIME.sub("", text) if len(text) <= TEXT_CHARACTERS else text
        if self.ok is False and len(text) <= TEXT_CHARACTERS:
            shown = _NUMBER.sub("", shown)
        return hash((self.tool, self.content, self.ok is False, shown))


def _measure(began: str, ended: str) -> float:
    """Return the seconds between two times of a CLI, or 0 if one of them is unknown."""
    try:
        return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


class RepetitionDetector:
    """Reads the passages of one session in order, and finds what the agent repeats."""

    def __init__(self) -> None:
        self._open: dict[str, _Call] = {}
        self._over: deque[str] = deque(maxlen=REPEATED_CALLS_KEPT)
        """Ids of calls with a result. Some CLIs report a call again when they know more."""
        self._prompt = self._message = self._text = self._compaction = ""
        self._ended = self._latest = ""
        """Times of the last result and of the last passage."""
        self._said = self._compactions = self._calls = 0
        self._forget_calls()

    def _forget_calls(self) -> None:
        self._recent: deque[tuple[int, str]] = deque(maxlen=REPEATED_CALLS)
        """Fingerprint and description of the last calls, newest first."""
        self._failures = 0
        self._equal = [0] * REPEATED_CALLS
        """For each length of a pattern, the number of calls in a row that equal the call that many
        calls before.
        """

    def take(self, passage: Passage) -> Repetition | None:
        """Add a passage. Return the repetition that it continues, or None."""
        if passage.thread:
            self._forget_calls()  # a sub-agent's work may change the next result
            return None
        before, self._latest = self._latest, passage.at or self._latest
        match passage.what:
            case PromptText(text=text):
                self._take_prompt(text, _measure(before, passage.at))
            case AssistantText(text=text) if text.strip():
                return self._settle() or self._take_message(text.strip(), passage.message)
            case ToolCallStarted():
                return self._begin_call(passage.what, passage.at)
            case ToolResult() if passage.what.call in self._open:
                return self._take_result(passage.what, passage.at)
            case CompactionReport():
                return self._settle() or self._take_compaction(passage.message)
            case _:
                pass
        return None

    def _take_prompt(self, text: str, pause: float) -> None:
        """Start to count again, unless a hook or a script repeats its prompt at once."""
        if text != self._prompt or pause >= PAUSE_SECONDS:
            self._prompt, self._said = text, 0
            self._forget_calls()

    def _take_message(self, text: str, message: str) -> Repetition | None:
        if message and message == self._message and text == self._text:
            return None  # another report of the same message
        self._said = self._said + 1 if text == self._text else 1
        self._message, self._text = message, text
        about = to_one_line(text, ABOUT_CHARACTERS)
        return _check(Repetition("message", self._said, about))

    def _begin_call(self, call: ToolCallStarted, at: str) -> Repetition | None:
        if call.call in self._open or call.call in self._over:
            return None
        repetition = self._settle()
        self._said = 0
        if _measure(self._ended, at) >= PAUSE_SECONDS:
            self._forget_calls()
        content = msgspec.json.encode(call.arguments or call.about, order="deterministic")
        action = str(call.arguments.get("action", ""))
        self._open[call.call] = _Call(call.tool, call.about, content, at, action)
        if len(self._open) > REPEATED_CALLS_KEPT:
            del self._open[next(iter(self._open))]
        return repetition

    def _take_result(self, result: ToolResult, at: str) -> Repetition | None:
        call = self._open[result.call]
        call.ok = call.ok if result.ok is None else result.ok
        call.ended = self._ended = at
        if not result.text and result.ok is not None:
            call.is_provisional = True  # a CLI may report the success before the text
            return None
        return self._end_call(result.call, result.text)

    def _settle(self) -> Repetition | None:
        """End the calls whose result has no text."""
        names = [name for name, call in self._open.items() if call.is_provisional]
        found = [self._end_call(name, "") for name in names]
        return next(filter(None, reversed(found)), None)

    def _end_call(self, name: str, text: str) -> Repetition | None:
        call = self._open.pop(name)
        self._over.append(name)
        self._calls += 1
        if call.is_waiting():
            self._calls += COMPACTION_CALLS  # a long call may be a lot of work
            self._forget_calls()
            return None
        fingerprint = call.make_fingerprint(text)
        for length, (before, _) in enumerate(self._recent, 1):
            is_equal = before == fingerprint
            self._equal[length - 1] = self._equal[length - 1] + 1 if is_equal else 0
        self._failures = self._failures + 1 if call.ok is False else 0
        self._recent.appendleft((fingerprint, f"{call.tool} {call.about}".strip()))
        return self._find_pattern()

    def _find_pattern(self) -> Repetition | None:
        for length, equal in enumerate(self._equal, 1):
            count = equal // length + 1
            names = [name for _, name in self._recent][:length]
            about = to_one_line(" · ".join(reversed(names)), ABOUT_CHARACTERS)
            is_failure = length == 1 and self._failures >= count
            pattern: RepeatedPattern = "failure" if is_failure else "call"
            if found := _check(Repetition(pattern if length == 1 else "alternation", count, about)):
                return found
        return None

    def _take_compaction(self, message: str) -> Repetition | None:
        if message and message == self._compaction:
            return None
        self._compaction = message
        is_idle = self._compactions and self._calls <= COMPACTION_CALLS
        self._compactions = self._compactions + 1 if is_idle else 1
        self._calls = 0
        return _check(Repetition("compaction", self._compactions))


def _check(found: Repetition) -> Repetition | None:
    return found if found.is_notable else None
