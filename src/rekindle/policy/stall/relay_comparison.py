"""Compare two consecutive relays to decide whether the loop made progress between them.

`pair_features` measures the change in 18 numbers, and `stall_weights` weighs them. If their
sum shows no progress, the relay is, in this order, finished, waiting, a treadmill or stalled. The
reason names what the relays show; a person can check it.
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from rekindle.documents.relay import Relay
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.relay.claimed_end import reports_all_done
from rekindle.policy.settings.runtime_settings import (
    HEADLINE_CHARACTERS,
    STALL_STUCK_FROM,
    STALL_TURNS,
)
from rekindle.policy.stall.pair_features import RelayPair, RelayReading, read_relay
from rekindle.policy.stall.stall_weights import WEIGHTS
from rekindle.policy.stall.verdict import StallKind, StallVerdict


def compare_relays(
    before: Relay | str, after: Relay | str, work: str | None = None
) -> StallVerdict:
    """Return the verdict on two consecutive relays.

    `work` describes the work between them: "" if there was none, None if that is unknown.
    """
    verdict = judge_readings(read_relay(before), read_relay(after))
    return verdict if work is None else weigh_work(verdict, work)


def judge_readings(before: RelayReading, after: RelayReading) -> StallVerdict:
    """Return the same verdict as `compare_relays` for relays that are already parsed."""
    problems = tuple(
        f"the {which} relay {reading.problem}"
        for which, reading in (("previous", before), ("current", after))
        if reading.problem
    )
    if problems:
        return StallVerdict(StallKind.UNUSABLE, problems)
    pair = RelayPair(before, after)
    if not is_stuck(pair):
        about = _shorten_text(pair.now.head.text)
        return StallVerdict(StallKind.PROGRESS, (_explain_progress(pair),), about)
    return _judge_stuck(pair)


def find_repetition(earlier: Sequence[RelayReading], current: RelayReading) -> StallVerdict | None:
    """Return the verdict on a directive that came back after others, or None.

    `earlier` holds the relays before the previous one, oldest first. If an agent alternates between
    two directives, each cycle alone looks like progress.
    """
    for back, reading in enumerate(reversed(earlier[-STALL_TURNS + 1 :]), 2):
        again = judge_readings(reading, current)
        if again.is_stuck and again.is_equal:
            words = f"the Next Action is the same as {back} cycles ago"
            return msgspec.structs.replace(again, reasons=(words,))
    return None


def weigh_work(verdict: StallVerdict, work: str) -> StallVerdict:
    """Return the verdict on a cycle, given its relays' verdict and a description of its work.

    Work does not turn a stuck relay into progress. But if the relays cannot be compared, the work
    alone decides.
    """
    if work and verdict.verdict != StallKind.PROGRESS:
        kind = StallKind.PROGRESS if verdict.verdict == StallKind.UNUSABLE else verdict.verdict
        reasons = (*verdict.reasons, f"but there was work: {work}")
        return msgspec.structs.replace(verdict, verdict=kind, reasons=reasons)
    return verdict


def reports_end(relay: Relay | None, verdict: StallVerdict, work: str | None) -> bool:
    """Return whether a relay reports that all the work is done.

    If it does so only in the style of a status report, the cycle must also show no work.
    """
    if relay is not None and reports_all_done(relay):
        return True
    return verdict.verdict == StallKind.FINISHED and not work


def measure_stuck(features: dict[str, float]) -> float:
    """Return how likely it is that two relays show no progress, from 0 to 1."""
    total = WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in features.items())
    return 1 / (1 + math.exp(-total))


def is_stuck(pair: RelayPair, measure: Callable[[dict[str, float]], float] = measure_stuck) -> bool:
    """Return whether two relays show no progress.

    `measure` weighs the features of pairs for which neither answer is certain.
    """
    if pair.has_moved_while_waiting or (pair.wait is None and _find_step(pair)):
        return False
    if pair.is_reworded or (pair.reports_finish and not pair.lists_own_work):
        return True
    return measure(pair.measure()) >= STALL_STUCK_FROM


def _judge_stuck(pair: RelayPair) -> StallVerdict:
    about, wait = _shorten_text(pair.now.head.text), pair.wait
    if pair.reports_finish and not pair.lists_own_work:
        kind, reason = StallKind.FINISHED, f"reports that the work is finished: {about}"
    elif wait is not None:
        about = reason = _shorten_text(wait.text)
        kind = StallKind.WAITING
    elif _is_more_of_the_same(pair):
        kind, reason = StallKind.TREADMILL, f"asks for more of the same: {about}"
    else:
        how = "word for word" if pair.is_equal else f"{pair.likeness:.0%} alike"
        what = "repeats its text" if pair.now.is_free else "asks for the same work"
        kind, reason = StallKind.STALLED, f"{what}, {how}: {about}"
    may_work = pair.lists_own_work or not pair.waits_explicitly
    return StallVerdict(kind, (reason,), about, is_equal=pair.is_equal, has_own_work=may_work)


def _is_more_of_the_same(pair: RelayPair) -> bool:
    is_endless = pair.was.is_open_ended and pair.now.is_open_ended
    return is_endless or (pair.was.asks_to_continue and pair.now.asks_to_continue)


def _find_step(pair: RelayPair) -> str:
    """Describe a step that is certainly progress, or return "" if there is none."""
    if done := pair.ticked:
        return f"done: {_shorten_text(done.text)}"
    if names := pair.other_names:
        return f"names another task: {', '.join(dict.fromkeys(names[:3]))}"
    word = pair.swapped_word
    return f"asks for the same work on another subject: {word}" if word else ""


def _explain_progress(pair: RelayPair) -> str:
    if step := _find_step(pair):
        return step
    if pair.gone and not pair.new:
        return f"no longer requested: {_shorten_text(pair.gone[0].text)}"
    if pair.new:
        return f"asks for different work: {_shorten_text(pair.new[0].text)}"
    if reported := pair.reported_task:
        return f"asks for the same work, but reports: {_shorten_text(reported.lstrip('#>*- '))}"
    return f"the relay has {render_count(len(pair.new_lines), 'new line')}"


def _shorten_text(text: str) -> str:
    return to_one_line(text, HEADLINE_CHARACTERS)
