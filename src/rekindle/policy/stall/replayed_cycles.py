"""Decide for each cycle of a recorded history what Rekindle would have done after it.

The cycles are judged as in a run: the relays give the verdict, the changed files show the work, and
`stall_response` chooses the reaction. After a pause or the end of a run, counting starts again, as
if a person had restarted the agent.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise

import msgspec

from rekindle.documents.events import CycleEnded, WorkSigns
from rekindle.policy.exits.restart import EnterSafeMode, StopRun
from rekindle.policy.progress.bulk_work import find_counted_work
from rekindle.policy.progress.work_progress import describe_work, list_artefact_names
from rekindle.policy.settings.runtime_settings import StallSettings
from rekindle.policy.stall.pair_features import RelayReading, read_relay
from rekindle.policy.stall.relay_comparison import (
    find_repetition,
    judge_readings,
    reports_end,
    weigh_work,
)
from rekindle.policy.stall.stall_response import decide_after_cycle, find_notice
from rekindle.policy.stall.verdict import StallKind, StallVerdict

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class RelayRevision(msgspec.Struct, frozen=True):
    text: str
    changed: tuple[str, ...] | None = None
    """Files changed since the previous revision, or None if unknown."""
    path: str = ""
    """The relay's own path, which is not evidence of work."""


class ReplayAction(StrEnum):
    NONE = "none"
    NOTICE = "notice"
    PAUSE = "pause"
    FINISH = "finish"


class ReplayedCycle(msgspec.Struct, frozen=True):
    verdict: StallVerdict
    action: ReplayAction
    work: str | None
    """Visible work of the cycle: "" if there was none, None if unknown."""


def replay_cycles(revisions: Sequence[RelayRevision]) -> list[ReplayedCycle]:
    """Return the verdict on each pair of consecutive revisions, and the reaction to it."""
    history = _History()
    readings = [read_relay(revision.text) for revision in revisions]
    return [
        history.add(before, after, earlier, revision)
        for (earlier, revision), (before, after) in zip(
            pairwise(revisions), pairwise(readings), strict=True
        )
    ]


class _History:
    """The cycles since the last pause, and the work of all cycles."""

    def __init__(self) -> None:
        self._cycles: list[CycleEnded] = []
        self._signs: list[WorkSigns] = []
        self._readings: list[RelayReading] = []
        self._number = 0

    def add(
        self,
        before: RelayReading,
        after: RelayReading,
        earlier: RelayRevision,
        revision: RelayRevision,
    ) -> ReplayedCycle:
        self._number += 1
        work = self._find_work(earlier, revision)
        verdict = judge_readings(before, after)
        self._readings.append(before)
        if verdict.verdict == StallKind.PROGRESS and not work:
            verdict = find_repetition(self._readings[:-1], after) or verdict
        if work is None:
            # An unchanged relay is weaker evidence of a stall if work is not visible.
            verdict = msgspec.structs.replace(verdict, is_equal=False)
        else:
            verdict = weigh_work(verdict, work)
        cycle = CycleEnded(
            ts=_NEVER,
            seq=self._number,
            cycle=self._number,
            verdict=verdict.verdict,
            words=verdict.why,
            about=verdict.about,
            is_equal=verdict.is_equal,
            has_own_work=verdict.has_own_work,
            evidence=work or "",
            claimed=reports_end(after.relay, verdict, work),
        )
        self._cycles.append(cycle)
        action = self._choose_action(cycle)
        if action in {ReplayAction.PAUSE, ReplayAction.FINISH}:
            self._cycles = []
        return ReplayedCycle(verdict, action, work)

    def _find_work(self, earlier: RelayRevision, revision: RelayRevision) -> str | None:
        counted = find_counted_work(earlier.text, revision.text)
        if revision.changed is None:
            return counted or None
        others = [path for path in revision.changed if path != revision.path]
        names = list_artefact_names(others)
        signs = WorkSigns(commits=bool(names), artefacts=names)
        work = describe_work(signs, self._signs, counted)
        self._signs.append(signs)
        return work

    def _choose_action(self, cycle: CycleEnded) -> ReplayAction:
        ended = {one.cycle: one for one in self._cycles[:-1]}
        decision = decide_after_cycle(
            ended, cycle, since=0, done=0, cap=0, settings=StallSettings()
        )
        if isinstance(decision, StopRun):
            return ReplayAction.FINISH
        if isinstance(decision, EnterSafeMode):
            return ReplayAction.PAUSE
        return ReplayAction.NOTICE if find_notice(self._cycles) else ReplayAction.NONE
