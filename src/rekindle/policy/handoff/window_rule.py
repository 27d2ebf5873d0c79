"""Decide when a full context window requires a fresh session that continues from a checkpoint.

If the window size is unknown, there is no handoff. A session is handed off only once, and its fill
level does not apply to the next session. Handoffs are halted if they would repeat endlessly: if a
session is above the threshold from its first turn, or if several handoffs in a row free hardly any
room. They are also halted if a cycle's sessions produce no visible work, or if there are too many
handoffs in a cycle to continue unattended.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from rekindle.documents.launches.brake import Brake
from rekindle.documents.launches.launch_types import (
    WindowUsage,
)
from rekindle.documents.manifest_keys import TRIGGER_PATTERN, Handover
from rekindle.policy.exits.restart import (
    HANDOFF_EXIT,
    EnterSafeMode,
)
from rekindle.policy.progress.idle import NO_PROGRESS_REASON
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    HANDOFF_VAIN_SHARE,
    HANDOFFS_MANY,
    HANDOFFS_MOST,
    HANDOFFS_VAIN,
    RelaySettings,
)

HANDOFF_REASON: Final = "handoff"
"""Reason for entering safe mode when handoffs are halted."""
REPETITION_CAUSE: Final = "repetition"
"""Cause of a handoff if the agent repeated itself."""
_AT_ONCE = "0"
_OFF = "(to disable handoffs: `handover: {compaction: off}`)"


class BrakeRule(msgspec.Struct, frozen=True):
    """The rule that a launch's hook uses to decide when to stop the CLI."""

    brake: Brake
    limit: str
    """Number of tokens at which the CLI is stopped, or a percentage of the window size given in the
    transcript, such as `80%`; 0 to stop immediately.
    """
    transcript: str = ""
    """The main session's transcript, used to ignore subagent transcripts; empty if unknown."""
    limits: tuple[tuple[str, int], ...] = ()
    """Model names with their limits in tokens, for transcripts that name the model. The window
    sizes of other models are unknown.
    """

    def render(self) -> bytes:
        """Render the rule as lines of keyword and value, in the same format for all CLIs."""
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
    """Return how full a window may become, in percent, or None if handoffs are disabled."""
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
    at_once: bool,
) -> BrakeRule | None:
    """Return the rule for a launch's hook, or None if the hook must never stop the CLI.

    `windows` maps models to their known window sizes in tokens. `window` is the size for the
    current model, used if transcripts do not name the model.
    """
    if at_once:
        return BrakeRule(brake, _AT_ONCE, transcript)
    if at is None:
        return None
    if brake.window:
        return BrakeRule(brake, f"{at}%", transcript)
    if brake.models:
        limits = tuple((model, _count_tokens_at(size, at)) for model, size in windows.items())
        return BrakeRule(brake, "", transcript, limits) if limits else None
    return BrakeRule(brake, str(_count_tokens_at(window, at)), transcript) if window else None


def render_notice(brake: Brake, transcript: str, text: str, mark: str) -> bytes:
    """Render a message that the hook gives to the agent, in the format of a brake rule.

    `mark` names the message in the file that the hook creates before it prints the message.
    """
    output = {"hookEventName": brake.told_as, "additionalContext": text}
    answer = msgspec.json.encode({"hookSpecificOutput": output}).decode()
    lines = {
        "event": brake.told_at,
        "own": transcript,
        "below": brake.below,
        "mark": mark,
        "answer": answer,
    }
    return "\n".join(f"{word} {value}" for word, value in lines.items() if value).encode()


def _count_tokens_at(window: int, at: int) -> int:
    """Return the smallest number of tokens that fills at least `at` percent of a window."""
    return -(-window * at // 100)


def is_handoff_due(reading: WindowUsage | None, at: int | None) -> bool:
    """Return whether a session must be handed off at its next turn boundary."""
    percent = reading.percent if reading else None
    return percent is not None and at is not None and percent >= at


def decide_halt(
    launches: Sequence[LaunchRecord], at: int | None, *, stays: bool = False
) -> EnterSafeMode | None:
    """Enter safe mode if another handoff would be useless; otherwise return None.

    `launches` are those of the cycle since the operator's last command; the last one was handed
    off. If `stays` is set, a person at the terminal can see the progress, so some checks are
    skipped.
    """
    last = launches[-1]
    if last.handed_by == REPETITION_CAUSE:
        return _decide_repetition_halt(launches)
    if last.handed_by != "threshold":
        return None
    words = _describe_crowding(launches, at) if at is not None else ""
    if not words and not stays:
        words = _describe_spiral(launches)
    return EnterSafeMode(HANDOFF_REASON, f"{words} {_OFF}") if words else None


def _decide_repetition_halt(launches: Sequence[LaunchRecord]) -> EnterSafeMode | None:
    """Pause the run if the session before the last one was handed off for the same reason."""
    if [launch.handed_by for launch in launches[-2:]] != [REPETITION_CAUSE] * 2:
        return None
    words = "two sessions in a row repeated themselves; the last one: " + launches[-1].words
    return EnterSafeMode(NO_PROGRESS_REASON, f"{words}; say in the task how to get past this step")


def _describe_crowding(launches: Sequence[LaunchRecord], at: int) -> str:
    """Explain why a fresh window has no room for work, or return "" if it may have room."""
    first = launches[-1].first_percent
    if first is None:
        return ""
    if first >= at:
        return (
            f"its window was {first:.0f} % full at the first turn, and the handoff threshold is "
            f"{at} %: shorten the rules and the relay, or raise `token_threshold_percent`"
        )
    if _count_vain_handoffs(launches, at) >= HANDOFFS_VAIN:
        return (
            f"{HANDOFFS_VAIN} handoffs in a row have hardly freed any room: the window was "
            f"{first:.0f} % full at the first turn, and the handoff threshold is {at} %: split "
            "this work into smaller steps"
        )
    return ""


def _describe_spiral(launches: Sequence[LaunchRecord]) -> str:
    """Explain why handoffs need a person to continue, or return "" if they do not."""
    handed = [launch for launch in launches if launch.handed_by == "threshold"]
    idle = 0
    for before, after in pairwise(reversed(handed)):
        if not after.work or after.work != before.work:
            break
        idle += 1
    if idle >= HANDOFFS_VAIN:
        return (
            f"{HANDOFFS_VAIN} sessions in a row have each filled a window, but no file in "
            "git, no commit and no open loop has changed: say in the task what to write down, or "
            "split it"
        )
    if len(handed) >= HANDOFFS_MOST:
        return (
            f"this cycle was handed off {HANDOFFS_MOST} times: check whether it makes progress, and"
            " split this work into smaller steps"
        )
    return ""


def _count_vain_handoffs(launches: Sequence[LaunchRecord], at: int) -> int:
    """Count the most recent handoffs in a row that freed hardly any room."""
    handed = [launch for launch in launches if launch.exit == HANDOFF_EXIT]
    count = 0
    for after in reversed(handed[1:]):
        if after.first_percent is None or after.first_percent < at * HANDOFF_VAIN_SHARE:
            break
        count += 1
    return count


def count_handoffs(launches: Iterable[LaunchRecord]) -> int:
    """Count the launches that continued from a handoff's checkpoint."""
    return sum(launch.continued for launch in launches)


def is_too_many(count: int) -> bool:
    """Return whether a cycle has had too many handoffs."""
    return count > HANDOFFS_MANY


def describe_too_many(before: int) -> str:
    """Return a notification if the next handoff is the first above the limit, otherwise ""."""
    if not is_too_many(before + 1) or is_too_many(before):
        return ""
    return (
        f"{before + 1} handoffs in one cycle: split this work, because it does not fit into one "
        "window"
    )
