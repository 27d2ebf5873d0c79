"""Decide when a session's window is so full that a fresh session continues from a checkpoint.

Without a known window size there is no handoff. A session is handed off once, and its reading does
not apply to the next session. Handoffs halt if they would repeat without end: a session above the
threshold from its first turn, or two handoffs in a row that free hardly any room. They also halt if
the sessions of a cycle leave no visible work, or if there are too many of them to run unattended.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from rekindle.documents.launches.cli_output import (
    Brake,
    WindowUsage,
)
from rekindle.documents.manifest import (
    TRIGGER_PATTERN,
    Handover,
)
from rekindle.policy.exits.restart import (
    HANDOFF_EXIT,
    EnterSafeMode,
)
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    HANDOFF_VAIN_SHARE,
    HANDOFFS_MANY,
    HANDOFFS_MOST,
    HANDOFFS_VAIN,
    RelaySettings,
)

HANDOFF_REASON: Final = "handoff"
"""Reason of the safe mode after halted handoffs."""
_AT_ONCE = "0"
_OFF = "(switch handoffs off: `handover: {compaction: off}`)"


class BrakeRule(msgspec.Struct, frozen=True):
    """Rule with which the hook of a launch decides when to stop it."""

    brake: Brake
    limit: str
    """Tokens; with `%`, percent of the window that the line reports; 0 to stop at once."""
    transcript: str = ""
    """The session's own transcript, to ignore those of subagents; empty if not known yet."""
    limits: tuple[tuple[str, int], ...] = ()
    """Tokens by model, if the line names it; other models have no known window."""

    def render(self) -> bytes:
        """Return the rule as lines of keyword and value, which the hook reads for any CLI."""
        brake = self.brake
        values_by_word = {
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
        lines = (
            f"{word} {value}"
            for word, values in values_by_word.items()
            for value in values
            if value
        )
        return "\n".join(lines).encode()


def find_threshold(handover: Handover | None, relay: RelaySettings) -> int | None:
    """Return how full a window may be, in percent; None if handoffs are off."""
    compaction = handover.compaction if handover else None
    if compaction is False:
        return None
    trigger = compaction.trigger if compaction is not None and compaction is not True else None
    match = TRIGGER_PATTERN.fullmatch(trigger) if trigger else None
    return int(match[1]) if match else relay.token_threshold_percent


def make_brake_rule(
    brake: Brake,
    at: int | None,
    windows: Mapping[str, int],
    *,
    window: int | None,
    transcript: str,
    asked: bool,
) -> BrakeRule | None:
    """Return the rule for the hook of a launch; None if it must never stop it.

    `windows` are the known window sizes by model. `window` is that of the current model, for
    transcripts that do not name it.
    """
    if asked:
        return BrakeRule(brake, _AT_ONCE, transcript)
    if at is None:
        return None
    if brake.window:
        return BrakeRule(brake, f"{at}%", transcript)
    if brake.models:
        limits = tuple((model, _count_tokens_at(size, at)) for model, size in windows.items())
        return BrakeRule(brake, "", transcript, limits) if limits else None
    return BrakeRule(brake, str(_count_tokens_at(window, at)), transcript) if window else None


def _count_tokens_at(window: int, at: int) -> int:
    """Return the fewest tokens that are at least `at` percent of a window."""
    return -(-window * at // 100)


def is_handoff_due(reading: WindowUsage | None, at: int | None) -> bool:
    """Return whether a session must be handed off at its next turn boundary."""
    percent = reading.percent if reading else None
    return percent is not None and at is not None and percent >= at


def decide_halt(
    tried: Sequence[LaunchRecord], at: int | None, *, stays: bool = False
) -> EnterSafeMode | None:
    """Return safe mode if another handoff would be useless, or None.

    `tried` are the launches of the cycle since the operator's last command; the last one was handed
    off. A person at the terminal can see the progress, so some checks are skipped then.
    """
    last = tried[-1]
    if last.handed_by != "threshold":
        return None
    words = _describe_crowding(tried, at) if at is not None else ""
    if not words and not stays:
        words = _describe_spiral(tried)
    return EnterSafeMode(HANDOFF_REASON, f"{words} {_OFF}") if words else None


def _describe_crowding(tried: Sequence[LaunchRecord], at: int) -> str:
    """Return why there is no room for work; empty if there is room, or if it is unknown."""
    first = tried[-1].first_percent
    if first is None:
        return ""
    if first >= at:
        return (
            f"its window was {first:.0f} % full at its first turn, and is handed off at {at} %:"
            " shorten rules and relay, or raise `token_threshold_percent`"
        )
    if _count_vain_handoffs(tried, at) >= HANDOFFS_VAIN:
        return (
            f"{HANDOFFS_VAIN} handoffs in a row have hardly made room: the window was {first:.0f} %"
            f" full at its first turn, and is handed off at {at} %: split this work into smaller"
            " steps"
        )
    return ""


def _describe_spiral(tried: Sequence[LaunchRecord]) -> str:
    """Return why windows are filled without results; empty if they are not."""
    handed = [launch for launch in tried if launch.handed_by == "threshold"]
    idle = 0
    for before, after in pairwise(reversed(handed)):
        if not after.work or after.work != before.work:
            break
        idle += 1
    if idle >= HANDOFFS_VAIN:
        return (
            f"{HANDOFFS_VAIN} sessions in a row have filled a window each, and neither a file that"
            " git sees nor a commit nor an open loop has changed: name in the task what to write"
            " down, or split it"
        )
    if len(handed) >= HANDOFFS_MOST:
        return (
            f"this cycle was handed off {HANDOFFS_MOST} times: check whether it makes progress, and"
            " split this work into smaller steps"
        )
    return ""


def _count_vain_handoffs(tried: Sequence[LaunchRecord], at: int) -> int:
    """Return how many handoffs in a row, up to the last, left hardly any room."""
    handed = [launch for launch in tried if launch.exit == HANDOFF_EXIT]
    count = 0
    for after in reversed(handed[1:]):
        if after.first_percent is None or after.first_percent < at * HANDOFF_VAIN_SHARE:
            break
        count += 1
    return count


def count_handoffs(tried: Iterable[LaunchRecord]) -> int:
    """Return how often the work of a cycle was handed off."""
    return sum(launch.goes_on for launch in tried)


def is_too_many(count: int) -> bool:
    """Return whether this many handoffs in one cycle mean that it is too large."""
    return count > HANDOFFS_MANY


def describe_too_many(before: int) -> str:
    """Return the notification if one more handoff is the first above the limit, or ""."""
    if not is_too_many(before + 1) or is_too_many(before):
        return ""
    return f"{before + 1} handoffs in one cycle: split this work, it has outgrown one window"
