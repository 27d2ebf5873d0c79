"""The handoff: when a session's window is so full that a fresh one goes on with a checkpoint.

A reading whose window nobody knows decides nothing. A session is handed off once: what was read of
its window says nothing of the next one's. One that was above the threshold from its first turn on,
or that a handoff has hardly lightened twice in a row, would be handed off for ever: that halts.
"""

from collections.abc import Mapping, Sequence

import msgspec

from rekindle.documents.launch import Brake, Usage
from rekindle.documents.manifest import TRIGGER, Handover
from rekindle.policy.restart import HANDED_OFF, Safe
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import HANDOFF_VAIN_SHARE, HANDOFFS_MANY, HANDOFFS_VAIN, Relay

WHY = "handoff"
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


def verdict(tried: Sequence[Attempt], at: int | None) -> Safe | None:
    """Whether another handoff would lead nowhere; None: it goes on.

    `tried` is what was tried in the cycle since the operator's last word; the last of them was
    handed off.
    """
    last = tried[-1]
    if last.handed_by != "threshold":
        return None
    first = last.first_percent
    if first is None or at is None:
        return None
    if first >= at:
        return Safe(
            WHY,
            f"its window was {first:.0f} % full at its first turn, and is handed off at {at} %:"
            f" shorten rules and relay, or raise `token_threshold_percent` {_OFF}",
        )
    if _vain(tried, at) >= HANDOFFS_VAIN:
        return Safe(
            WHY,
            f"{HANDOFFS_VAIN} handoffs in a row have hardly made room: the window was {first:.0f} %"
            f" full at its first turn, and is handed off at {at} %: split this work into smaller"
            f" steps {_OFF}",
        )
    return None


def _vain(tried: Sequence[Attempt], at: int) -> int:
    """How many handoffs in a row, up to the last session, have left it hardly any room."""
    handed = [one for one in tried if one.exit == HANDED_OFF]
    count = 0
    for after in reversed(handed[1:]):
        if after.first_percent is None or after.first_percent < at * HANDOFF_VAIN_SHARE:
            break
        count += 1
    return count


def count(tried: Mapping[str, Attempt]) -> int:
    """How often a cycle was handed off."""
    return sum(one.exit == HANDED_OFF for one in tried.values())


def is_much(count: int) -> bool:
    """Whether so many handoffs in one cycle say that it is too large."""
    return count > HANDOFFS_MANY
