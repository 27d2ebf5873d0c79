"""What a cycle came to: its relay held against the one before, and against what was done."""

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.event import CycleEnded, WorkSigns
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Field, Relay
from rekindle.flows.until import UntilResult
from rekindle.flows.work_signs import changed_files, count_commits, count_resolved
from rekindle.flows.world import Agent, World
from rekindle.policy import convergence, decisions
from rekindle.policy.artefacts import is_artefact
from rekindle.policy.fold import Projection
from rekindle.policy.loop import Reviewed
from rekindle.policy.progress import (
    artefact_name,
    artefact_names,
    constant_artefacts,
    describe_work,
    name_series,
)
from rekindle.policy.settings import STALL_TURNS
from rekindle.policy.stall.compare import compare
from rekindle.policy.stall.verdict import Kind, Verdict
from rekindle.system.worktree import WorkTree
from rekindle.thresholds.texts import DID_CHARACTERS

_NONE = relays.parse("")
_CLAIMED = "the agent reports that the work is done"


class JudgeCycle:
    def __init__(self, agent: Agent, world: World) -> None:
        self._agent, self._world = agent, world

    def ended(
        self,
        number: int,
        now: Projection,
        *,
        how: str,
        until: UntilResult,
        claimed: bool,
        review: Reviewed,
    ) -> CycleEnded:
        """Return the event that ends a cycle.

        `how` is where its relay is from, `until` the result of the operator's command. `claimed`:
        the relay reports that the work is done.
        """
        standing = now.documents.get("relay")
        before, after = self.relay(now.began.relay), self.current_relay(now)
        tree = WorkTree(self._agent.folder)
        changed = decisions.compare(before or _NONE, after or _NONE)
        files, signs = self._work(now, tree, len(changed.added))
        earlier = [one.signs for one in sorted(now.ended.values(), key=_place) if one.signs]
        work = describe_work(signs, earlier)
        is_literal = self._world.settings.runtime.stall.identical and _is_identical(before, after)
        if is_literal:
            work = ""  # the operator wants the same directive to count, whatever else was done
        names = [artefact_name(path) for path in files if is_artefact(path)]
        constant = set() if signs.commits else constant_artefacts(names, earlier)
        if how == "carried":
            # The relay is the old one, or in Rekindle's words: only the work shows a step.
            found = _by_work(before, after, work, signs)
        else:
            found = self._verdict(number, now, before, after, work)
            asks_else = _asks_else(before, after, found)
            signs = msgspec.structs.replace(signs, asks_else=asks_else)
        if is_literal and after is not None:
            about = one_line(after.next_action or "", DID_CHARACTERS)
            found = Verdict(Kind.STALLED, ("the same Next Action",), about, is_equal=True)
        elif found is not None and not tree.is_known:
            # Not all of it can be seen, such as removed files: the same words are only alike.
            unseen = (*found.reasons, "there is no git here that could show all work")
            reasons = unseen if found.is_stuck else found.reasons
            found = msgspec.structs.replace(found, is_equal=False, reasons=reasons)
        if claimed:
            found = None  # finished work is not a stall
        topic = convergence.topic(after) if after else ""
        return CycleEnded(
            ts=self._world.clock(),
            cycle=number,
            how=how,
            relay=standing.path if standing else "",
            verdict=found.verdict if found else "",
            words=_CLAIMED if claimed else found.why if found else "",
            about=found.about if found else "",
            is_equal=found.is_equal if found else False,
            did=one_line((after and after.content(Field.WHAT_WE_DID)) or "", DID_CHARACTERS).lstrip(
                "-* "
            ),
            evidence=work,
            topic=topic,
            owed=self._owed(now, topic, before, after, files, constant=constant),
            redebated="\n".join(one.words for one in changed.redebated),
            until=until.verdict,
            until_words=until.words,
            claimed=claimed,
            review=review.verdict,
            review_words=review.words,
            seconds=max(0.0, self._world.clock().timestamp() - now.began.at),
            signs=name_series(signs, earlier),
        )

    def current_relay(self, now: Projection) -> Relay | None:
        standing = now.documents.get("relay")
        return self.relay(standing.path) if standing else None

    def relay(self, path: str) -> Relay | None:
        """A relay as the archive keeps it; None: it has none there."""
        data = self._world.store.archived(self._agent.name, path) if path else None
        return relays.parse(data.decode("utf-8", "replace")) if data else None

    def _work(
        self, now: Projection, tree: WorkTree, new_decisions: int
    ) -> tuple[list[str], WorkSigns]:
        """Return the files that changed since the cycle began, and all signs of its work."""
        began = now.began
        files, committed = changed_files(tree, self._agent.folder, began.head, began.at)
        return files, WorkSigns(
            commits=count_commits(tree, began.head, committed),
            artefacts=artefact_names(files),
            resolved=count_resolved(now, began.at),
            decisions=new_decisions,
        )

    def _verdict(
        self,
        number: int,
        now: Projection,
        before: Relay | None,
        after: Relay | None,
        work: str,
    ) -> Verdict | None:
        """What was done between the two relays; None where there was none before."""
        if after is None:
            return None
        if before is None:
            # Nothing to compare: but who waits for a person waits from the first cycle on.
            alone = compare(after, after, work)
            return alone if alone.verdict == Kind.WAITING else None
        found = compare(before, after, work)
        if found.verdict != Kind.PROGRESS or work:
            return found
        # Directives that take turns are a step each time, and lead nowhere.
        for back in range(2, STALL_TURNS + 1):
            earlier = now.ended.get(number - back)
            then = self.relay(earlier.relay) if earlier else None
            again = compare(then, after) if then else None
            if again is not None and again.is_stuck and again.is_equal:
                words = f"the same as {back} cycles before"
                return msgspec.structs.replace(again, reasons=(words,))
        return found

    def _owed(
        self,
        now: Projection,
        topic: str,
        before: Relay | None,
        after: Relay | None,
        files: list[str],
        *,
        constant: set[str],
    ) -> str:
        """Return what the stage of its topic asks for and the cycle lacks; empty: nothing."""
        if not self._agent.converges or after is None:
            return ""
        stage = convergence.stage_after(now.ended, topic)
        held = convergence.held(stage, after, files, before, constant)
        return "" if held.ok else held.words


def _is_identical(before: Relay | None, after: Relay | None) -> bool:
    """Return whether two relays have the same directive, but for white space."""
    pair = [" ".join((one.next_action or "").split()) if one else "" for one in (before, after)]
    return bool(pair[0]) and pair[0] == pair[1]


def _asks_else(before: Relay | None, after: Relay | None, found: Verdict | None) -> bool:
    """Return whether the relay itself, without any other work, asks for something else."""
    if after is None or after.next_action is None:
        return False
    if before is None:
        return found is None  # the first relay, and it does not wait for a person
    is_step = found is not None and found.verdict == Kind.PROGRESS
    return is_step and compare(before, after).verdict == Kind.PROGRESS


def _by_work(
    before: Relay | None, after: Relay | None, work: str, signs: WorkSigns
) -> Verdict | None:
    """Return the verdict on a cycle without a relay of its own; None: nothing to compare."""
    if not work and (before is None or after is None):
        return None
    seen = (
        f"it changed nothing but what every cycle changes, such as {signs.artefacts[0]}"
        if signs.artefacts
        else "nothing was seen to be done"
    )
    kind, words = (
        (Kind.PROGRESS, work) if work else (Kind.STALLED, f"the agent wrote no relay, and {seen}")
    )
    about = one_line(after.next_action or "", DID_CHARACTERS) if after else ""
    return Verdict(kind, (words,), about)


def _place(cycle: CycleEnded) -> int:
    return cycle.seq
