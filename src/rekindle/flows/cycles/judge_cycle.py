"""Judge a finished cycle from its relay, the previous relay and the work done."""

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.events import CycleEnded, WorkSigns
from rekindle.documents.relay import Relay, RelayField
from rekindle.errors import DocumentError
from rekindle.flows.cycles.work_signs import count_commits, count_resolved, list_changed_files
from rekindle.flows.launches.checked_command import CommandResult
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.progress.artefacts import is_artefact
from rekindle.policy.progress.bulk_work import find_counted_work
from rekindle.policy.progress.work_progress import (
    describe_work,
    find_constant_artefacts,
    list_artefact_names,
    make_artefact_name,
    name_series,
)
from rekindle.policy.projection.projection import Projection
from rekindle.policy.relay import convergence, decision_ledger
from rekindle.policy.relay.claimed_end import reports_all_done
from rekindle.policy.relay.decision_ledger import DecisionChanges
from rekindle.policy.settings.runtime_settings import STALL_TURNS
from rekindle.policy.stall.pair_features import read_relay
from rekindle.policy.stall.relay_comparison import compare_relays, find_repetition, reports_end
from rekindle.policy.stall.stall_response import LastReview
from rekindle.policy.stall.verdict import StallKind, StallVerdict
from rekindle.system.git.work_status import GitStatus
from rekindle.thresholds.texts import DID_CHARACTERS

_NONE = relays.parse("")
_CLAIMED = "the agent reports that the work is done"


class CycleWork(msgspec.Struct, frozen=True):
    files: list[str]
    """Files that changed since the cycle began."""
    signs: WorkSigns
    words: str
    """Description of the work, or "" if there was none."""
    decisions: DecisionChanges


class CycleJudge:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world

    def ended(
        self,
        number: int,
        now: Projection,
        *,
        how: str,
        until: CommandResult,
        claimed: bool,
        review: LastReview,
    ) -> CycleEnded:
        """Return the event that ends a cycle.

        `how` is the relay's origin, and `until` is the result of the `until:` command. `claimed` is
        True if the relay reports that the work is done.
        """
        committed = now.documents.get("relay")
        before, after = self.relay(now.began.relay), self.read_current_relay(now)
        tree = GitStatus(self._agent.folder)
        found = self._find_work(now, before, after)
        files, signs, work = found.files, found.signs, found.words
        earlier = _list_earlier_signs(now)
        is_literal = self._ports.settings.runtime.stall.identical and _is_identical(before, after)
        if is_literal:
            work = ""  # `stall.identical` treats an unchanged directive as a stall
        names = [make_artefact_name(path) for path in files if is_artefact(path)]
        constant = set() if signs.commits else find_constant_artefacts(names, earlier)
        if how == "carried":
            # The agent did not write this relay, so only its work can show progress.
            judged = _judge_by_work(before, after, work, signs)
        else:
            judged = self._judge_relays(number, now, before, after, work)
            asks_else = _asks_else(before, after, judged)
            signs = msgspec.structs.replace(signs, asks_else=asks_else)
        if is_literal and after is not None:
            about = to_one_line(after.next_action or "", DID_CHARACTERS)
            judged = StallVerdict(
                StallKind.STALLED, ("the Next Action is unchanged",), about, is_equal=True
            )
        elif judged is not None and not tree.is_known:
            # Without git, some work (such as a removed file) is invisible, so an unchanged relay is
            # weaker evidence of a stall.
            unseen = (*judged.reasons, "without git, some work is not visible")
            reasons = unseen if judged.is_stuck else judged.reasons
            judged = msgspec.structs.replace(judged, is_equal=False, reasons=reasons)
        if claimed:
            judged = None  # finished work is not a stall
        topic = convergence.find_topic(after) if after else ""
        return CycleEnded(
            ts=self._ports.clock(),
            cycle=number,
            how=how,
            relay=committed.path if committed else "",
            verdict=judged.verdict if judged else "",
            words=_CLAIMED if claimed else judged.why if judged else "",
            about=judged.about if judged else "",
            is_equal=judged.is_equal if judged else False,
            has_own_work=judged.has_own_work if judged else False,
            did=to_one_line(
                (after and after.content(RelayField.WHAT_WE_DID)) or "", DID_CHARACTERS
            ).lstrip("-* "),
            evidence=work,
            topic=topic,
            owed=self._find_owed(now, topic, before, after, files, constant=constant),
            redebated="\n".join(cycle.words for cycle in found.decisions.redebated),
            until=until.verdict,
            until_words=until.words,
            claimed=claimed,
            review=review.verdict,
            review_words=review.words,
            seconds=max(0.0, self._ports.clock().timestamp() - now.began.at),
            signs=name_series(signs, earlier),
        )

    def reports_end(self, now: Projection, relay: Relay, how: str) -> bool:
        """Return whether a cycle's relay reports that all the work is done."""
        before = self.relay(now.began.relay)
        if before is None or how == "carried":
            return reports_all_done(relay)
        verdict = compare_relays(before, relay)
        is_finished = verdict.verdict == StallKind.FINISHED
        work = self._find_work(now, before, relay).words if is_finished else ""
        return reports_end(relay, verdict, work)

    def read_current_relay(self, now: Projection) -> Relay | None:
        committed = now.documents.get("relay")
        return self.relay(committed.path) if committed else None

    def relay(self, path: str) -> Relay | None:
        """Return a relay from the archive, or None if it is missing or invalid."""
        data = self._ports.store.archived(self._agent.name, path) if path else None
        try:
            return relays.parse(data.decode("utf-8", "replace")) if data else None
        except DocumentError:
            return None  # agents can write to the archive, so this file may be invalid

    def _find_work(self, now: Projection, before: Relay | None, after: Relay | None) -> CycleWork:
        """Return the work since the cycle began."""
        began, tree = now.began, GitStatus(self._agent.folder)
        files, committed = list_changed_files(tree, self._agent.folder, began.head, began.at)
        decisions = decision_ledger.compare_decisions(before or _NONE, after or _NONE)
        signs = WorkSigns(
            commits=count_commits(tree, began.head, committed),
            artefacts=list_artefact_names(files),
            resolved=count_resolved(now, began.at),
            decisions=len(decisions.added),
        )
        texts = [relays.render(relay) if relay else "" for relay in (before, after)]
        words = describe_work(signs, _list_earlier_signs(now), find_counted_work(*texts))
        return CycleWork(files, signs, words, decisions)

    def _judge_relays(
        self,
        number: int,
        now: Projection,
        before: Relay | None,
        after: Relay | None,
        work: str,
    ) -> StallVerdict | None:
        """Return the verdict on the change from one relay to the next, or None."""
        if after is None:
            return None
        if before is None:
            # Without an earlier relay there is nothing to compare, but a first cycle may already be
            # waiting for a person.
            alone = compare_relays(after, after)
            return alone if alone.verdict == StallKind.WAITING else None
        verdict = compare_relays(before, after, work)
        if verdict.verdict != StallKind.PROGRESS or work:
            return verdict
        # Begin with the relay before the previous one.
        ends = [now.ended.get(number - back) for back in range(STALL_TURNS, 1, -1)]
        then = [self.relay(end.relay) for end in ends if end]
        readings = [read_relay(relay) for relay in then if relay]
        return find_repetition(readings, read_relay(after)) or verdict

    def _find_owed(
        self,
        now: Projection,
        topic: str,
        before: Relay | None,
        after: Relay | None,
        files: list[str],
        *,
        constant: set[str],
    ) -> str:
        """Return the requirement of the topic's stage that the cycle did not meet, or ""."""
        if not self._agent.converges or after is None:
            return ""
        stage = convergence.choose_next_stage(now.ended, topic)
        check = convergence.check_stage(stage, after, files, before, constant)
        return "" if check.ok else check.words


def _list_earlier_signs(now: Projection) -> list[WorkSigns]:
    """Return the signs of work of the earlier cycles, oldest first."""
    ended = sorted(now.ended.values(), key=lambda end: end.seq)
    return [cycle.signs for cycle in ended if cycle.signs]


def _is_identical(before: Relay | None, after: Relay | None) -> bool:
    """Return whether two relays have the same directive, ignoring whitespace."""
    pair = [
        " ".join((relay.next_action or "").split()) if relay else "" for relay in (before, after)
    ]
    return bool(pair[0]) and pair[0] == pair[1]


def _asks_else(before: Relay | None, after: Relay | None, verdict: StallVerdict | None) -> bool:
    """Return whether the relay has a new directive, regardless of the work done."""
    if after is None or after.next_action is None:
        return False
    if before is None:
        return verdict is None  # the first relay is new unless it waits for a person
    is_step = verdict is not None and verdict.verdict == StallKind.PROGRESS
    return is_step and compare_relays(before, after).verdict == StallKind.PROGRESS


def _judge_by_work(
    before: Relay | None, after: Relay | None, work: str, signs: WorkSigns
) -> StallVerdict | None:
    """Judge a cycle without a relay by its work. Return None if the result is unclear."""
    if not work and (before is None or after is None):
        return None
    observation = (
        f"it changed only files that every cycle changes, such as {signs.artefacts[0]}"
        if signs.artefacts
        else "there is no visible work"
    )
    kind, words = (
        (StallKind.PROGRESS, work)
        if work
        else (StallKind.STALLED, f"the agent wrote no relay, and {observation}")
    )
    about = to_one_line(after.next_action or "", DID_CHARACTERS) if after else ""
    return StallVerdict(kind, (words,), about)
