"""Summarize without a model, from commits, tool calls, messages and unfinished work.

The summary only quotes existing text, so it cannot make anything up.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from rekindle.documents.brief import BriefLabel
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.relay import RelayField
from rekindle.documents.summaries.summary import (
    Summary,
    SummaryItem,
    SummaryKind,
    make_line,
    make_quotation,
    render_code,
)
from rekindle.documents.transcripts.turns import (
    ToolCall,
    Turn,
)
from rekindle.formats.counts import render_count
from rekindle.thresholds.texts import MECHANICAL_FEW, MECHANICAL_ITEMS, MECHANICAL_QUOTED_CHARACTERS


class KnownWork(msgspec.Struct, frozen=True, kw_only=True):
    """A session's work, as far as the log, git and the relay show it without a transcript."""

    commits: tuple[str, ...] = ()
    """Subjects of the commits since the session started, newest first."""
    changed: tuple[str, ...] = ()
    """Files that the session changed."""
    carried: tuple[str, ...] = ()
    """Work that was unfinished when the session started."""
    loops: tuple[str, ...] = ()
    """Open loops, each with its id and text."""
    phase: str = ""
    decisions: tuple[str, ...] = ()
    next_action: str = ""


class TurnDigest:
    """Facts for a summary, collected from turns."""

    def __init__(self) -> None:
        self.turns = 0
        self.asked: Turn | None = None
        self.said: deque[Turn] = deque(maxlen=2)
        self.failed: deque[tuple[int, ToolCall]] = deque(maxlen=MECHANICAL_FEW)
        self.unknown: deque[tuple[int, ToolCall]] = deque(maxlen=MECHANICAL_ITEMS)
        self._requests = self._calls = self._failures = self._written = 0

    def of(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Add each turn of the main thread to the digest, then yield it."""
        for turn in turns:
            if not turn.thread:
                self._add_turn(turn)
                yield turn

    def _add_turn(self, turn: Turn) -> None:
        self.turns += 1
        self._written += turn.written
        if turn.who == "person":
            self._requests += 1
            self.asked = turn if turn.text else self.asked
        elif turn.who == "agent" and turn.text:
            self.said.append(turn)
        for call in turn.calls:
            self._calls += 1
            if call.result == "failed":
                self._failures += 1
                self.failed.append((turn.number, call))
            elif call.result != "ok":
                self.unknown.append((turn.number, call))

    def numbers(self) -> Iterator[SummaryItem]:
        """Yield the request, call and token counts, unless only requests are known."""
        parts = [render_count(self._requests, "request")]
        if self._calls:
            parts.append(f"{render_count(self._calls, 'tool call')}, {self._failures} failed")
        if self._written:
            parts.append(f"{render_count(self._written, 'token')} written")
        if parts[1:]:
            yield SummaryItem(", ".join(parts))

    def output(self) -> Iterator[SummaryItem]:
        """Yield the agent's last texts if its CLI does not report tool calls."""
        if not self._calls:
            for turn in self.said:
                yield _quote_turn("the agent", turn)

    def state(self) -> Iterator[SummaryItem]:
        for turn in self.said:
            yield _quote_turn("the agent", turn)
        for number, call in self.failed:
            yield SummaryItem(
                make_quotation("failed", f"{call.tool} {call.about}", MECHANICAL_QUOTED_CHARACTERS),
                (number,),
            )
        for number, call in self.unknown:
            words = f"{call.tool} {call.about}"
            yield SummaryItem(
                make_quotation("result unknown", words, MECHANICAL_QUOTED_CHARACTERS),
                (number,),
            )
        if self.turns and not self.said and not self._calls:
            yield SummaryItem("nothing was said or done")

    def left(self, work: KnownWork) -> Iterator[SummaryItem]:
        if self.asked is not None:
            yield _quote_turn("the person", self.asked)
        for each in (*work.carried[:MECHANICAL_ITEMS], *work.loops[:MECHANICAL_ITEMS]):
            yield SummaryItem(make_line(each))


def summarize_mechanically(kind: SummaryKind, turns: Iterable[Turn], work: KnownWork) -> Summary:
    gist = TurnDigest()
    deque(gist.of(turns), maxlen=0)
    return summarize_digest(kind, gist, work)


def summarize_digest(kind: SummaryKind, gist: TurnDigest, work: KnownWork) -> Summary:
    done, state = tuple(_list_done(gist, work)), tuple(gist.state())
    left = tuple(gist.left(work))
    step = work.next_action or (left[0].text if left else "Check the current state, and continue.")
    next_action = (SummaryItem(make_line(step)),)
    decided = tuple(SummaryItem(make_line(each)) for each in work.decisions)
    sections: Mapping[str, tuple[SummaryItem, ...]]
    if kind == "checkpoint":
        sections = {
            CheckpointSection.COMPLETED_WORK: done,
            CheckpointSection.CURRENT_STATE: state,
            CheckpointSection.REMAINING_WORK: left or next_action,
            CheckpointSection.RESUME_INSTRUCTIONS: (
                SummaryItem("Check the current state first: this was written without a model."),
                *next_action,
            ),
        }
    elif kind == "relay":
        sections = {
            RelayField.CURRENT_PHASE: (SummaryItem(make_line(work.phase or "not known")),),
            RelayField.WHAT_WE_DID: (*done, *state),
            RelayField.KEY_DECISIONS: decided or (SummaryItem("none known"),),
            RelayField.NEXT_ACTION: next_action,
            RelayField.METRICS: tuple(gist.numbers()),
        }
    else:
        sections = {
            BriefLabel.CHANGED: (*done, *gist.output()),
            BriefLabel.OPEN_LOOPS: tuple(SummaryItem(make_line(loop)) for loop in work.loops),
            BriefLabel.NEXT: next_action,
            BriefLabel.NUMBERS: tuple(gist.numbers()),
        }
    return Summary(kind, {str(name): items for name, items in sections.items()})


def _list_done(gist: TurnDigest, work: KnownWork) -> Iterator[SummaryItem]:
    for subject in work.commits[:MECHANICAL_ITEMS]:
        yield SummaryItem(make_quotation("committed", subject, MECHANICAL_QUOTED_CHARACTERS))
    if work.changed:
        more = len(work.changed) - MECHANICAL_FEW
        rest = f", and {more} more" if more > 0 else ""
        yield SummaryItem(
            f"changed {', '.join(map(render_code, work.changed[:MECHANICAL_FEW]))}{rest}"
        )
    if not work.commits and not work.changed:
        yield SummaryItem("no changes known from git")
    yield from gist.numbers()


def _quote_turn(whose: str, turn: Turn) -> SummaryItem:
    return SummaryItem(
        make_quotation(f"{whose}, turn {turn.number}", turn.text, MECHANICAL_QUOTED_CHARACTERS)
    )
