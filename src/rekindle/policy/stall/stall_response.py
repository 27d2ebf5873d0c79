"""Decide between two cycles whether the run continues, gets a stall notice, or is paused.

A cycle whose relay reports that the work is done ends the run, unless `until:` fails or the review
does not agree. In that case, the next cycle gets a notice of the failure instead of a stall notice.

The verdict says what the relays show; the work of the cycle decides how far the reaction goes. Each
cycle without progress climbs one rung of a ladder; a cycle with progress goes back to rung 0.

| rung | consequence |
|---|---|
| 1 | the stall is recorded |
| 2 | the next cycle gets a notice: STALL DETECTED, the repeated directive, earlier attempts |
| 3 | the run is paused, and a person is notified |

A cycle with visible work never climbs above rung 2: an agent that works is not paused. An identical
directive without any sign of work starts on rung 2. A wait pauses the run immediately if the relay
lists no other work and there was none, because only a person can end the wait. Cycles are counted
from a person's last restart or answer. If the relay and the work disagree, a second opinion may
turn one pause of a series into a notice, or pause a run whose cycles change nothing.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Literal

import msgspec

from rekindle.documents import events
from rekindle.documents.events import CycleEnded
from rekindle.formats.counts import render_count
from rekindle.policy.exits.refused_end import (
    NOT_STARTED,
    explain_refusal,
)
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    StopRun,
)
from rekindle.policy.settings.runtime_settings import (
    CYCLES_KEPT,
    OPINION_CYCLES,
    SHORT_CYCLE_SECONDS,
    StallSettings,
)
from rekindle.policy.stall.opinion_effect import (
    is_pause_added,
    is_pause_softened,
    list_evidence,
)
from rekindle.policy.stall.verdict import (
    STUCK_KINDS,
    StallKind,
)

NOTICE_RUNG = 2
PAUSE_RUNG = 3
_TELL_SWITCH = "`runtime: stall: tell: false` disables this notice"
_SIGNAL = "STALL DETECTED: previous cycle produced same next action. You must change approach."
_OWN_WORK = "Continue with the work that needs no one else, and keep the wait in the relay."
_IF_DONE = "If the work is done, write only DONE as the Next Action."
_FEW, _SOME = 5, 3


class CycleBeginning(msgspec.Struct, frozen=True, order=True):
    """The state at the beginning of the last cycle."""

    seq: int = 0
    cycle: int = 0
    at: float = 0.0
    """Unix time at which the cycle began."""
    relay: str = ""
    head: str = ""


class LastReview(msgspec.Struct, frozen=True, order=True):
    """The last review of a run that was reported as done."""

    seq: int = 0
    cycle: int = 0
    verdict: str = ""
    words: str = ""


class LastAnswer(msgspec.Struct, frozen=True, order=True):
    """The last answer from a person."""

    seq: int = 0
    text: str = ""
    asked: str = ""


class StartNextCycle(msgspec.Struct, frozen=True):
    """Decision to start another cycle."""


def record_review(event: events.ReviewMade) -> LastReview:
    return LastReview(event.seq, event.cycle, event.verdict, event.words)


def remember_cycle_end(cycles: dict[int, CycleEnded], event: CycleEnded) -> None:
    """Store the end of a cycle. If it is reported twice, keep the first report."""
    before = cycles.get(event.cycle)
    if before is None or event.seq < before.seq:
        cycles[event.cycle] = event
    while len(cycles) > CYCLES_KEPT:
        del cycles[min(cycles)]


def decide_after_cycle(
    cycles: Mapping[int, CycleEnded],
    last: CycleEnded,
    *,
    since: int,
    done: int,
    cap: int,
    settings: StallSettings,
    has_messages: bool = False,
) -> StartNextCycle | EnterSafeMode | StopRun:
    """Decide what follows a cycle: another cycle, a pause, or the end of the run.

    `done` is the number of finished cycles in the run, and `cap` the maximum, or 0 for no maximum.
    If the agent reports that its work is done and there is an `until:` command, only that command
    decides. With `has_messages`, a person's message waits for the next prompt, so the work is not
    done yet.
    """
    is_last = bool(cap) and done >= cap
    if has_messages and not is_last:
        return StartNextCycle()
    end = _end_run(last)
    if end is not None:
        return end
    pause = _decide_pause(cycles, last, since) if settings.pause else None
    if pause is not None and is_last:
        # Safe mode would wait for a next cycle that will never start, so the run stops instead.
        return StopRun(pause.why, pause.words)
    if pause is not None:
        return pause
    some = render_count(done, "cycle")
    checked = (
        "`until:` does not pass" if last.until else ("the agent did not report the end of its work")
    )
    if last.review == "failed" or NOT_STARTED in explain_refusal(last):
        checked = explain_refusal(last)
    return StopRun("cycles", f"{some}, and {checked}") if is_last else StartNextCycle()


def _end_run(last: CycleEnded) -> StopRun | None:
    """End the run if `until:` or the agent reports that it is done, unless a review failed."""
    is_reported = last.until == "passed" or (last.claimed and not last.until)
    if not is_reported or last.review == "failed":
        return None
    if last.review == "unavailable":
        return StopRun("claimed", f"the review failed: {last.review_words}")
    if last.until == "passed":
        agrees = ", and the review agrees" if last.review else ""
        return StopRun("done", f"the `until:` command passes{agrees}")
    return StopRun("done", "the review agrees") if last.review else StopRun("claimed")


def _decide_pause(
    cycles: Mapping[int, CycleEnded], last: CycleEnded, since: int
) -> EnterSafeMode | None:
    is_paused = measure_ladder([*_select_cycles_since(cycles, since), last]).idle >= PAUSE_RUNG
    waits = last.verdict == StallKind.WAITING
    # Another agent's work in the same folder also counts as evidence, but does not end the wait.
    if waits and (is_paused or not (last.evidence or last.has_own_work)):
        return EnterSafeMode("waiting", f"it waits for a person: {last.about or last.words}")
    if is_paused and last.claimed:
        check = explain_refusal(last) or "`until:` fails"
        return EnterSafeMode("disputed", f"it reports that it is done, but {check}")
    if is_paused and not is_pause_softened(last):
        reason = last.owed or last.words
        about = "" if last.about in reason else last.about
        why = "; ".join(filter(None, (about, reason)))
        return EnterSafeMode("stalled", f"several cycles without progress: {why}")
    if is_pause_added(last):
        why = f"a second opinion sees no progress: {last.opinion_words}"
        return EnterSafeMode("stalled", f"several cycles without visible work; {why}")
    return None


def needs_opinion(
    cycles: Mapping[int, CycleEnded],
    last: CycleEnded,
    *,
    since: int,
    settings: StallSettings,
    sees_work: bool,
) -> bool:
    """Return whether a model is asked about a cycle, because its relay and its work disagree.

    Either the run would be paused although files changed, or the relay reports progress although
    several cycles changed nothing. `sees_work` is False if some work is invisible. Each series of
    cycles without progress is asked about once.
    """
    if not (settings.ask and settings.pause) or _end_run(last) is not None:
        return False
    series = list(takewhile(_lacks_progress, [last, *_select_cycles_since(cycles, since)[::-1]]))
    if any(cycle.opinion for cycle in series):
        return False
    if pause := _decide_pause(cycles, last, since):
        is_chosen = settings.identical and last.is_equal
        return pause.why == "stalled" and bool(list_evidence(last)) and not is_chosen
    idle = [cycle for cycle in series[:OPINION_CYCLES] if _is_empty(cycle)]
    reports_progress = last.verdict == StallKind.PROGRESS
    return sees_work and reports_progress and len(idle) == OPINION_CYCLES


def _lacks_progress(cycle: CycleEnded) -> bool:
    return is_cycle_stuck(cycle) or not cycle.evidence


def _is_empty(cycle: CycleEnded) -> bool:
    """Return whether a cycle is known to have changed nothing."""
    return cycle.signs is not None and not cycle.evidence and not list_evidence(cycle)


def is_cycle_stuck(ended: CycleEnded) -> bool:
    """Return whether a cycle's relay shows no progress.

    A cycle is also stuck if its stage required work and it only talked. A cycle that reports an end
    while `until:` fails made progress only if there is visible work.
    """
    if ended.claimed:
        return not ended.evidence
    talks = bool(ended.owed) and not ended.evidence
    return ended.verdict in {*STUCK_KINDS, StallKind.UNUSABLE} or talks


class Ladder(msgspec.Struct, frozen=True):
    """The number of cycles in a row without progress."""

    stuck: int = 0
    """Cycles whose relay shows no progress, with or without work."""
    idle: int = 0
    """Of these, the last ones without visible work."""

    @property
    def is_noticed(self) -> bool:
        """Return whether the next cycle gets a notice. Each series of cycles gets one."""
        return NOTICE_RUNG in {self.stuck, self.idle}


def measure_ladder(cycles: Sequence[CycleEnded]) -> Ladder:
    """Return the rungs that the last of these cycles has reached."""
    ladder = Ladder()
    for cycle in cycles:
        if not is_cycle_stuck(cycle):
            ladder = Ladder()
        elif _is_working(cycle):
            ladder = Ladder(stuck=ladder.stuck + 1)
        else:
            is_repeated = cycle.is_equal and not cycle.evidence and not cycle.claimed
            least = NOTICE_RUNG if is_repeated else 0
            ladder = Ladder(max(ladder.stuck + 1, least), max(ladder.idle + 1, least))
    return ladder


def _is_working(cycle: CycleEnded) -> bool:
    """Return whether a cycle's work keeps the run from being paused."""
    waits_only = cycle.verdict == StallKind.WAITING and not cycle.has_own_work
    # The work of another agent in the same folder must not hide a wait that stays the same.
    return bool(cycle.evidence) and not (waits_only and cycle.is_equal)


def render_stall_notice(
    ended: Mapping[int, CycleEnded], since: int, settings: StallSettings
) -> str:
    """Return the notice of a stall or a wait for the next cycle, or "" if there is none."""
    cycles = _select_cycles_since(ended, since)
    if not settings.tell or not cycles:
        return ""
    last = cycles[-1]
    match find_notice(cycles):
        case "":
            return ""
        case "wait":
            wait = f"In this work, a person must act first: {last.about or last.words}"
            return f"{wait}\n{_OWN_WORK}\n{_TELL_SWITCH}"
        case "stall":
            repeated = f"Repeated: {last.about}" if last.about else ""
            parts = [_SIGNAL, repeated, f"Why: {last.words}", _name_step(last), _IF_DONE]
            return "\n".join(part for part in [*parts, _TELL_SWITCH] if part)


def find_notice(cycles: Sequence[CycleEnded]) -> Literal["", "stall", "wait"]:
    """Return which notice the next cycle gets after these cycles, or ""."""
    last = cycles[-1]
    if last.verdict == StallKind.PROGRESS or last.claimed:
        return ""  # other notices cover the topic and `until:`
    if measure_ladder(cycles).is_noticed or is_pause_softened(last):
        return "stall"
    is_new = _waits_beside_work(last) and not any(map(_waits_beside_work, cycles[-2:-1]))
    return "wait" if is_new else ""


def _waits_beside_work(cycle: CycleEnded) -> bool:
    return cycle.verdict == StallKind.WAITING and cycle.has_own_work


def _name_step(last: CycleEnded) -> str:
    """Return the advice for a cycle that worked without a new request, or ""."""
    return f"There was work ({last.evidence}): name the next step of it." if last.evidence else ""


def render_until_failure(cycles: Mapping[int, CycleEnded]) -> str:
    """Return a notice about the failed `until:` command for the next cycle, or "" if it passed."""
    last = cycles[max(cycles)] if cycles else None
    if last is None or last.until != "failed" or not last.until_words:
        return ""
    claim = "You reported that the work is done. " if last.claimed else ""
    return f"{claim}The work is done when the `until:` command passes.\n{last.until_words}"


def render_failed_review(cycles: Mapping[int, CycleEnded]) -> str:
    """Return a notice about the failed review for the next cycle, or "" if it did not fail."""
    last = cycles[max(cycles)] if cycles else None
    if last is None or last.review != "failed":
        return ""
    claim = "You reported that the work is done." if last.claimed else "`until:` passes."
    return (
        f"{claim} A review does not agree. Missing, according to the review:\n{last.review_words}"
    )


def render_failed_cycles(cycles: Mapping[int, CycleEnded]) -> str:
    """List what the last stuck cycles tried; return "" if the last cycle made progress."""
    stuck: list[CycleEnded] = []
    for number in sorted(cycles, reverse=True):
        if not is_cycle_stuck(cycles[number]):
            break
        stuck.insert(0, cycles[number])
    lines = [f"- cycle {cycle.cycle}: {cycle.did}" for cycle in stuck[-_FEW:] if cycle.did]
    return "\n".join(["Tried without progress:", *lines]) if lines else ""


def _select_cycles_since(cycles: Mapping[int, CycleEnded], since: int) -> list[CycleEnded]:
    return [cycles[number] for number in sorted(cycles) if cycles[number].seq > since]


def are_cycles_hurried(cycles: Mapping[int, CycleEnded]) -> bool:
    """Return whether the last cycles were so short that handovers took most of the time."""
    last = [cycles[number].seconds for number in sorted(cycles)[-_SOME:]]
    return len(last) == _SOME and sum(last) / _SOME < SHORT_CYCLE_SECONDS
