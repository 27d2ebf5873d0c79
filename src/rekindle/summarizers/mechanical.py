"""A summary without a model: what was committed, called and said, and what was left over.

It understands nothing, and therefore invents nothing: what somebody said is quoted.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from rekindle.documents.brief import Label
from rekindle.documents.checkpoint import Part
from rekindle.documents.relay import Field
from rekindle.documents.summary import Item, Kind, Summary, code, line, quotation
from rekindle.documents.transcript import Call, Turn
from rekindle.thresholds.texts import MECHANICAL_FEW, MECHANICAL_ITEMS, MECHANICAL_QUOTED_CHARACTERS


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session without reading it: from the log, from git, from before."""

    commits: tuple[str, ...] = ()
    """What the commits since its beginning say, newest first."""
    changed: tuple[str, ...] = ()
    """The files that were changed."""
    carried: tuple[str, ...] = ()
    """What was left over before it."""
    loops: tuple[str, ...] = ()
    """The open loops."""
    phase: str = ""
    decisions: tuple[str, ...] = ()
    next_action: str = ""


class Gist:
    """What is remembered of turns, of which there may be any number."""

    def __init__(self) -> None:
        self.turns = 0
        self.asked: Turn | None = None
        self.said: deque[Turn] = deque(maxlen=2)
        self.failed: deque[tuple[int, Call]] = deque(maxlen=MECHANICAL_FEW)
        self.unknown: deque[tuple[int, Call]] = deque(maxlen=MECHANICAL_ITEMS)
        self._requests = self._calls = self._failures = self._written = 0

    def of(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """The turns of the main thread, each of them remembered as it passes."""
        for turn in turns:
            if not turn.thread:
                self._add(turn)
                yield turn

    def _add(self, turn: Turn) -> None:
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

    def numbers(self) -> Iterator[Item]:
        """How much there was of it; nothing, where there is no turn to count."""
        if not self.turns:
            return
        calls = f"{_some(self._calls, 'tool call')}, {self._failures} failed"
        written = f"{_some(self._written, 'token')} written"
        yield Item(f"{_some(self._requests, 'request')}, {calls}, {written}")

    def state(self) -> Iterator[Item]:
        for turn in self.said:
            yield _quoted("the agent", turn)
        for number, call in self.failed:
            yield Item(
                quotation("failed", f"{call.tool} {call.about}", MECHANICAL_QUOTED_CHARACTERS),
                (number,),
            )
        for number, call in self.unknown:
            words = f"{call.tool} {call.about}"
            yield Item(
                quotation("how it ended is not known", words, MECHANICAL_QUOTED_CHARACTERS),
                (number,),
            )
        if self.turns and not self.said and not self._calls:
            yield Item("nothing was said or done")

    def left(self, known: Known) -> Iterator[Item]:
        if self.asked is not None:
            yield _quoted("the person", self.asked)
        for each in (*known.carried[:MECHANICAL_ITEMS], *known.loops[:MECHANICAL_ITEMS]):
            yield Item(line(each))


def summarize(kind: Kind, turns: Iterable[Turn], known: Known) -> Summary:
    gist = Gist()
    deque(gist.of(turns), maxlen=0)
    return summary_of(kind, gist, known)


def summary_of(kind: Kind, gist: Gist, known: Known) -> Summary:
    done, state = tuple(_done(gist, known)), tuple(gist.state())
    left = tuple(gist.left(known))
    said = known.next_action or (left[0].text if left else "Look at what is there, and go on.")
    next_action = (Item(line(said)),)
    decided = tuple(Item(line(each)) for each in known.decisions)
    sections: Mapping[str, tuple[Item, ...]]
    if kind == "checkpoint":
        sections = {
            Part.COMPLETED_WORK: done,
            Part.CURRENT_STATE: state,
            Part.REMAINING_WORK: left or next_action,
            Part.RESUME_INSTRUCTIONS: (
                Item("Look at what is there first: this was put together without a model."),
                *next_action,
            ),
        }
    elif kind == "relay":
        sections = {
            Field.CURRENT_PHASE: (Item(line(known.phase or "not known")),),
            Field.WHAT_WE_DID: (*done, *state),
            Field.KEY_DECISIONS: decided or (Item("none that is known of"),),
            Field.NEXT_ACTION: next_action,
            Field.METRICS: tuple(gist.numbers()),
        }
    else:
        sections = {
            Label.CHANGED: done,
            Label.OPEN_LOOPS: tuple(Item(line(loop)) for loop in known.loops),
            Label.NEXT: next_action,
            Label.NUMBERS: tuple(gist.numbers()),
        }
    return Summary(kind, {str(name): items for name, items in sections.items()})


def _done(gist: Gist, known: Known) -> Iterator[Item]:
    for subject in known.commits[:MECHANICAL_ITEMS]:
        yield Item(quotation("committed", subject, MECHANICAL_QUOTED_CHARACTERS))
    if known.changed:
        more = len(known.changed) - MECHANICAL_FEW
        rest = f", and {more} more" if more > 0 else ""
        yield Item(f"changed {', '.join(map(code, known.changed[:MECHANICAL_FEW]))}{rest}")
    if not known.commits and not known.changed:
        yield Item("git knows of no change")
    yield from gist.numbers()


def _quoted(whose: str, turn: Turn) -> Item:
    return Item(quotation(f"{whose}, turn {turn.number}", turn.text, MECHANICAL_QUOTED_CHARACTERS))


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
