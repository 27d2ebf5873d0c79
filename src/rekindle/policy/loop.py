"""Between two cycles: whether the loop continues, is told that it repeats itself, or is paused.

A cycle whose relay reports that the work is done ends the run, unless `until:` fails or the review
does not agree: then the next cycle is told what failed. It is never told that it stalls.

The ladder. A cycle that took no step is a rung; one that did leads back to the ground.

| rung | what is done |
|---|---|
| 1 | it is recorded |
| 2 | the next cycle is told, once: STALL DETECTED, what was repeated, what was tried |
| 3 | the loop is paused, and a person is told |

Asked for in the very same words, without a sign of work, it begins on the second rung. A wait in
which nothing else is done is paused at once: nobody else can end it. All of it counts from the last
restart, or answer, of a person.
"""

from collections.abc import Mapping, Sequence

import msgspec

from rekindle.documents import event as events
from rekindle.documents.event import CycleEnded
from rekindle.policy.refused_end import NOT_STARTED, explain_refusal
from rekindle.policy.restart import Safe, Stop
from rekindle.policy.settings import CYCLES_KEPT, SHORT_CYCLE_SECONDS, Stall
from rekindle.policy.stall.verdict import STUCK, Kind

TOLD_RUNG = 2
PAUSED_RUNG = 3
OFF_SWITCH = "`runtime: stall: {key}: false` switches this off"
_SIGNAL = "STALL DETECTED: previous cycle produced same next action. You must change approach."
_FEW, _SOME = 5, 3


class Began(msgspec.Struct, frozen=True, order=True):
    """How the last cycle began."""

    seq: int = 0
    cycle: int = 0
    at: float = 0.0
    """In seconds since 1970."""
    relay: str = ""
    head: str = ""


class Reviewed(msgspec.Struct, frozen=True, order=True):
    """The last review of a reported end."""

    seq: int = 0
    cycle: int = 0
    verdict: str = ""
    words: str = ""


class Answer(msgspec.Struct, frozen=True, order=True):
    """What a person answered last."""

    seq: int = 0
    text: str = ""
    asked: str = ""


class Next(msgspec.Struct, frozen=True):
    """Another cycle."""


def began(event: events.CycleStarted) -> Began:
    return Began(event.seq, event.cycle, event.ts.timestamp(), event.relay, event.head)


def reviewed(event: events.ReviewMade) -> Reviewed:
    return Reviewed(event.seq, event.cycle, event.verdict, event.words)


def ended(known: dict[int, CycleEnded], event: CycleEnded) -> None:
    """Remember how a cycle ended; of one that is told twice, the first counts."""
    before = known.get(event.cycle)
    if before is None or event.seq < before.seq:
        known[event.cycle] = event
    while len(known) > CYCLES_KEPT:
        del known[min(known)]


def after(
    known: Mapping[int, CycleEnded],
    last: CycleEnded,
    *,
    since: int,
    done: int,
    cap: int,
    settings: Stall,
) -> Next | Safe | Stop:
    """Return what comes after a cycle: another one, a pause, or the end of the run.

    `done` of the `cap` cycles that the run may have are over, 0: any number. If the agent reports
    that its work is done and there is a command of `until:`, only that command decides.
    """
    end = _end(last)
    if end is not None:
        return end
    is_last = bool(cap) and done >= cap
    pause = _pause(known, last, since) if settings.pause else None
    if pause is not None and is_last:
        # Nobody is kept waiting in safe mode for a cycle that will not come; but it is said.
        return Stop(pause.why, pause.words)
    if pause is not None:
        return pause
    some = f"{done} cycle{'' if done == 1 else 's'}"
    checked = "`until:` does not pass" if last.until else "the agent reported no end of its work"
    if last.review == "failed" or NOT_STARTED in explain_refusal(last):
        checked = explain_refusal(last)
    return Stop("cycles", f"{some}, and {checked}") if is_last else Next()


def _end(last: CycleEnded) -> Stop | None:
    """Return the end of the run, if `until:` or the agent reports it and no review refuses it."""
    is_reported = last.until == "passed" or (last.claimed and not last.until)
    if not is_reported or last.review == "failed":
        return None
    if last.review == "unavailable":
        return Stop("claimed", f"the review could not be made: {last.review_words}")
    if last.until == "passed":
        agrees = ", and the review agrees" if last.review else ""
        return Stop("done", f"the command of `until:` passes{agrees}")
    return Stop("done", "the review agrees") if last.review else Stop("claimed")


def _pause(known: Mapping[int, CycleEnded], last: CycleEnded, since: int) -> Safe | None:
    off = OFF_SWITCH.format(key="pause")
    is_paused = rung([*_since(known, since), last]) >= PAUSED_RUNG
    # What another agent did in the same folder is evidence too: it does not end the wait.
    if last.verdict == Kind.WAITING and (is_paused or not last.evidence):
        return Safe("waiting", f"it waits for a person: {last.about or last.words}; {off}")
    if is_paused and last.claimed:
        check = explain_refusal(last) or "`until:` fails"
        return Safe("disputed", f"it reports that it is done, and {check}; {off}")
    if is_paused:
        why = "; ".join(filter(None, (last.about, last.owed or last.words, off)))
        return Safe("stalled", f"cycle after cycle without progress: {why}")
    return None


def is_stuck(ended: CycleEnded) -> bool:
    """Return whether a cycle took no step.

    By its relay, or because it only talked where work was owed. A cycle that reports an end while
    `until:` fails took a step only if there is work to see.
    """
    if ended.claimed:
        return not ended.evidence
    talks = bool(ended.owed) and not ended.evidence
    return ended.verdict in {*STUCK, Kind.UNUSABLE} or talks


def rung(cycles: Sequence[CycleEnded]) -> int:
    """How high on the ladder the last of these cycles has led."""
    found = 0
    for one in cycles:
        if not is_stuck(one):
            found = 0
        elif one.is_equal and not one.evidence and not one.claimed:
            found = max(found + 1, TOLD_RUNG)
        else:
            found += 1
    return found


def notice(known: Mapping[int, CycleEnded], since: int, settings: Stall) -> str:
    """What the next cycle is told; empty: nothing stands in its way."""
    cycles = _since(known, since)
    if not settings.tell or not cycles or rung(cycles) != TOLD_RUNG:
        return ""
    last = cycles[-1]
    if last.verdict == Kind.PROGRESS or last.claimed:
        return ""  # what it owes its topic, or `until:`, is said elsewhere
    parts = [_SIGNAL, f"Repeated: {last.about}" if last.about else "", f"Why: {last.words}"]
    parts.append(OFF_SWITCH.format(key="tell"))
    return "\n".join(part for part in parts if part)


def failed_until(known: Mapping[int, CycleEnded]) -> str:
    """Return what the next cycle is told of a command of `until:` that failed, or nothing."""
    last = known[max(known)] if known else None
    if last is None or last.until != "failed" or not last.until_words:
        return ""
    claim = "You reported that the work is done. " if last.claimed else ""
    return f"{claim}The work is done when the command of `until:` passes.\n{last.until_words}"


def failed_review(known: Mapping[int, CycleEnded]) -> str:
    """Return what the next cycle is told of a review that does not agree, or nothing."""
    last = known[max(known)] if known else None
    if last is None or last.review != "failed":
        return ""
    claim = "You reported that the work is done." if last.claimed else "`until:` passes."
    return f"{claim} A review does not agree. What it misses:\n{last.review_words}"


def tried(known: Mapping[int, CycleEnded]) -> str:
    """What the last cycles did that led nowhere, whatever has been said since; empty: they did."""
    stuck: list[CycleEnded] = []
    for number in sorted(known, reverse=True):
        if not is_stuck(known[number]):
            break
        stuck.insert(0, known[number])
    lines = [f"- cycle {one.cycle}: {one.did}" for one in stuck[-_FEW:] if one.did]
    return "\n".join(["Tried, and it led nowhere:", *lines]) if lines else ""


def _since(known: Mapping[int, CycleEnded], since: int) -> list[CycleEnded]:
    return [known[number] for number in sorted(known) if known[number].seq > since]


def is_hurried(known: Mapping[int, CycleEnded]) -> bool:
    """Whether the last cycles were so short that handing on is most of what they did."""
    last = [known[number].seconds for number in sorted(known)[-_SOME:]]
    return len(last) == _SOME and sum(last) / _SOME < SHORT_CYCLE_SECONDS
