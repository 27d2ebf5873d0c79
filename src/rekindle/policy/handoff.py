"""The handoff: when a session's window is so full that a fresh one goes on with a checkpoint.

A reading whose window nobody knows decides nothing. A session is handed off once: what was read of
its window says nothing of the next one's. One that was above the threshold from its first turn on,
or that a handoff has hardly lightened twice in a row, would be handed off for ever: that halts. So
does a cycle whose sessions leave no trace, or are more than anybody would want unseen.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from rekindle.documents.launch import Brake, Usage
from rekindle.documents.manifest import TRIGGER, Handover
from rekindle.policy.restart import HANDED_OFF, Safe
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import (
    HANDOFF_VAIN_SHARE,
    HANDOFFS_MANY,
    HANDOFFS_MOST,
    HANDOFFS_VAIN,
    Relay,
)

WHY: Final = "handoff"
"""Why a halted handoff is in safe mode."""
_AT_ONCE = "0"
_OFF = "(switch handoffs off: `handover: {compaction: off}`)"


class Rule(msgspec.Struct, frozen=True):
    """When a launch is stopped: what its hook is told."""

    brake: Brake
    limit: str
    """Tokens; with a `%`, percent of the window that the same line tells; 0: at once."""
    transcript: str = ""
    """The session's own: what a sub-agent's tells does not count; empty: nobody knows yet."""
    limits: tuple[tuple[str, int], ...] = ()
    """Tokens by model, where the line names it; another one's window nobody knows."""

    def render(self) -> bytes:
        """A line for each word; the hook knows these words, and no CLI."""
        brake = self.brake
        said = {
            "event": [brake.event],
            "limit": [self.limit],
            "limits": [f"{tokens} {model}" for model, tokens in self.limits],
            "own": [self.transcript],
            "sign": brake.signs,
            "after": [brake.after],
            "count": brake.counts,
            "window": [brake.window],
            "model": brake.models,
            "below": [brake.below],
            "call": [brake.call],
            "calls": brake.calls,
            "asides": [brake.asides],
            "settled": [brake.settled],
            "void": [brake.void],
            "answer": [brake.answer],
        }
        lines = (f"{word} {value}" for word, values in said.items() for value in values if value)
        return "\n".join(lines).encode()


def threshold(handover: Handover | None, relay: Relay) -> int | None:
    """How full a window may be, in percent; None: nothing is handed off."""
    compaction = handover.compaction if handover else None
    if compaction is False:
        return None
    trigger = compaction.trigger if compaction is not None and compaction is not True else None
    said = TRIGGER.fullmatch(trigger) if trigger else None
    return int(said[1]) if said else relay.token_threshold_percent


def rule(
    brake: Brake,
    at: int | None,
    windows: Mapping[str, int],
    *,
    window: int | None,
    transcript: str,
    asked: bool,
) -> Rule | None:
    """What the hook of a launch goes by; None: it is never to stop it.

    `windows` are those of the models that are known, `window` that of the one that it has, where
    no line names it.
    """
    if asked:
        return Rule(brake, _AT_ONCE, transcript)
    if at is None:
        return None
    if brake.window:
        return Rule(brake, f"{at}%", transcript)
    if brake.models:
        limits = tuple((model, _share(size, at)) for model, size in windows.items())
        return Rule(brake, "", transcript, limits) if limits else None
    return Rule(brake, str(_share(window, at)), transcript) if window else None


def _share(window: int, at: int) -> int:
    """The first number of tokens that is so much of a window."""
    return -(-window * at // 100)


def is_due(reading: Usage | None, at: int | None) -> bool:
    """Whether a session is to be handed off at its next boundary."""
    found = reading.percent if reading else None
    return found is not None and at is not None and found >= at


def verdict(tried: Sequence[Attempt], at: int | None, *, stays: bool = False) -> Safe | None:
    """Whether another handoff would lead nowhere; None: it goes on.

    `tried` is what was tried in the cycle since the operator's last word; the last of them was
    handed off. Who sits before it sees whether it gets anywhere.
    """
    last = tried[-1]
    if last.handed_by != "threshold":
        return None
    words = _crowded(tried, at) if at is not None else ""
    if not words and not stays:
        words = _going_in_circles(tried)
    return Safe(WHY, f"{words} {_OFF}") if words else None


def _crowded(tried: Sequence[Attempt], at: int) -> str:
    """What leaves no room for work; empty: there is some, or nobody knows."""
    first = tried[-1].first_percent
    if first is None:
        return ""
    if first >= at:
        return (
            f"its window was {first:.0f} % full at its first turn, and is handed off at {at} %:"
            " shorten rules and relay, or raise `token_threshold_percent`"
        )
    if _vain(tried, at) >= HANDOFFS_VAIN:
        return (
            f"{HANDOFFS_VAIN} handoffs in a row have hardly made room: the window was {first:.0f} %"
            f" full at its first turn, and is handed off at {at} %: split this work into smaller"
            " steps"
        )
    return ""


def _going_in_circles(tried: Sequence[Attempt]) -> str:
    """What says that window after window is filled for nothing; empty: nothing does."""
    handed = [one for one in tried if one.handed_by == "threshold"]
    idle = 0
    for before, after in pairwise(reversed(handed)):
        if not after.work or after.work != before.work:
            break
        idle += 1
    if idle >= HANDOFFS_VAIN:
        return (
            f"{HANDOFFS_VAIN} sessions in a row have filled a window each, and neither a file that"
            " git sees nor a commit nor an open loop has changed: say in the task what is to be"
            " written down, or split it"
        )
    if len(handed) >= HANDOFFS_MOST:
        return (
            f"this cycle was handed off {HANDOFFS_MOST} times: look whether it gets anywhere, and"
            " split this work into smaller steps"
        )
    return ""


def _vain(tried: Sequence[Attempt], at: int) -> int:
    """How many handoffs in a row, up to the last session, have left it hardly any room."""
    handed = [one for one in tried if one.exit == HANDED_OFF]
    count = 0
    for after in reversed(handed[1:]):
        if after.first_percent is None or after.first_percent < at * HANDOFF_VAIN_SHARE:
            break
        count += 1
    return count


def count(tried: Iterable[Attempt]) -> int:
    """How often the work of a cycle was handed on."""
    return sum(one.goes_on for one in tried)


def is_much(count: int) -> bool:
    """Whether so many handoffs in one cycle say that it is too large."""
    return count > HANDOFFS_MANY


def too_many(before: int) -> str:
    """What a person is told, once, when one more follows on those before; empty: nothing."""
    if not is_much(before + 1) or is_much(before):
        return ""
    return f"{before + 1} handoffs in one cycle: split this work, it has outgrown one window"
