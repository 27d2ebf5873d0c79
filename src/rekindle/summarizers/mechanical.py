"""A summary without a model: what was committed, called and said, and what was left over.

It understands nothing, and therefore invents nothing: what somebody said is quoted.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rekindle.documents.brief import Label
from rekindle.documents.checkpoint import Part
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Field
from rekindle.documents.summary import Item, Kind, Summary, line
from rekindle.documents.transcript import Turn

_QUOTED = 300
_FEW = 5
_LEFT = 20


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


def summarize(kind: Kind, turns: Sequence[Turn], known: Known) -> Summary:
    main = [turn for turn in turns if not turn.thread]
    done, state = tuple(_done(main, known)), tuple(_state(main))
    left = tuple(_left(main, known))
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
            Field.METRICS: (_numbers(main),),
        }
    else:
        sections = {
            Label.CHANGED: done,
            Label.OPEN_LOOPS: tuple(Item(line(loop)) for loop in known.loops),
            Label.NEXT: next_action,
            Label.NUMBERS: (_numbers(main),),
        }
    return Summary(kind, {str(name): items for name, items in sections.items()})


def _done(turns: Sequence[Turn], known: Known) -> Iterator[Item]:
    for subject in known.commits[:_LEFT]:
        yield Item(line(f"committed: {_in_quotes(subject)}"))
    if known.changed:
        more = len(known.changed) - _FEW
        rest = f", and {more} more" if more > 0 else ""
        yield Item(line(f"changed {', '.join(known.changed[:_FEW])}{rest}"))
    if not known.commits and not known.changed:
        yield Item("git knows of no change")
    yield _numbers(turns)


def _numbers(turns: Sequence[Turn]) -> Item:
    calls = [call.result for turn in turns for call in turn.calls]
    asked = sum(turn.who == "person" for turn in turns)
    failed = calls.count("failed")
    written = sum(turn.written for turn in turns)
    words = f"{_some(asked, 'request')}, {_some(len(calls), 'tool call')}, {failed} failed"
    return Item(f"{words}, {_some(written, 'token')} written")


def _state(turns: Sequence[Turn]) -> Iterator[Item]:
    said = [turn for turn in turns if turn.who == "agent" and turn.text]
    for turn in said[-2:]:
        yield _quoted("the agent", turn.number, turn.text)
    calls = [(turn, call) for turn in turns for call in turn.calls]
    for turn, call in [one for one in calls if one[1].result == "failed"][-_FEW:]:
        words = f"failed: {_in_quotes(f'{call.tool} {call.about}')}"
        yield Item(line(words), (turn.number,))
    for turn, call in calls:
        if call.result in {"open", "unknown"}:
            words = f"how it ended is not known: {_in_quotes(f'{call.tool} {call.about}')}"
            yield Item(line(words), (turn.number,))
    if not said and not calls:
        yield Item("nothing was said or done")


def _left(turns: Sequence[Turn], known: Known) -> Iterator[Item]:
    asked = [turn for turn in turns if turn.who == "person" and turn.text]
    for turn in asked[-1:]:
        yield _quoted("the person", turn.number, turn.text)
    for each in (*known.carried[:_LEFT], *known.loops[:_LEFT]):
        yield Item(line(each))


def _quoted(whose: str, turn: int, text: str) -> Item:
    return Item(line(f"{whose}, turn {turn}: {_in_quotes(text)}"))


def _in_quotes(text: str) -> str:
    words = one_line(text, _QUOTED).replace("“", "'").replace("”", "'")
    return f"“{words}”"


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
