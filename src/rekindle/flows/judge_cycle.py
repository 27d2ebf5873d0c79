"""What a cycle came to: its relay held against the one before, and against what was done."""

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.event import CycleEnded, WorkSigns
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Field, Relay
from rekindle.flows.work_signs import changed_files, count_commits, count_resolved
from rekindle.flows.world import Agent, World
from rekindle.policy import convergence, decisions
from rekindle.policy.artefacts import is_artefact
from rekindle.policy.fold import Projection
from rekindle.policy.progress import artefact_names
from rekindle.policy.settings import STALL_TURNS
from rekindle.policy.stall.compare import compare
from rekindle.policy.stall.verdict import NO_EVIDENCE, Evidence, Kind, Verdict
from rekindle.system.worktree import WorkTree

_DID = 300
_NONE = relays.parse("")


class JudgeCycle:
    def __init__(self, agent: Agent, world: World) -> None:
        self._agent, self._world = agent, world

    def ended(self, number: int, now: Projection, *, how: str, until: str) -> CycleEnded:
        """The event that ends a cycle: `how` its relay came about, and what `until:` says."""
        standing = now.documents.get("relay")
        before, after = self.relay(now.began.relay), self.relay(standing.path if standing else "")
        tree = WorkTree(self._agent.folder)
        files, evidence = self._work(now, tree)
        changed = decisions.compare(before or _NONE, after or _NONE)
        evidence = msgspec.structs.replace(evidence, decisions=len(changed.added))
        if how == "carried":
            # These are our own words, or the old ones: what was done is all that tells.
            found = _by_work(before, after, evidence)
        else:
            found = self._verdict(number, now, before, after, evidence)
        if found is not None and not tree.is_known:
            # What was done cannot be seen: the same words alone are no more than alike.
            unseen = (*found.reasons, "there is no git here that could show work")
            reasons = unseen if found.is_stuck else found.reasons
            found = msgspec.structs.replace(found, is_equal=False, reasons=reasons)
        topic = convergence.topic(after) if after else ""
        return CycleEnded(
            ts=self._world.clock(),
            cycle=number,
            how=how,
            relay=standing.path if standing else "",
            verdict=found.verdict if found else "",
            words=found.why if found else "",
            about=found.about if found else "",
            is_equal=found.is_equal if found else False,
            did=one_line((after and after.content(Field.WHAT_WE_DID)) or "", _DID).lstrip("-* "),
            evidence=evidence.work,
            topic=topic,
            owed=self._owed(now, topic, before, after, files),
            redebated="\n".join(one.words for one in changed.redebated),
            until=until,
            seconds=max(0.0, self._world.clock().timestamp() - now.began.at),
            signs=WorkSigns(
                commits=evidence.commits,
                artefacts=artefact_names(files),
                resolved=evidence.resolved_loops,
                decisions=evidence.decisions,
                asks_else=how != "carried" and _asks_else(before, after, found),
            ),
        )

    def relay(self, path: str) -> Relay | None:
        """A relay as the archive keeps it; None: it has none there."""
        data = self._world.store.archived(self._agent.name, path) if path else None
        return relays.parse(data.decode("utf-8", "replace")) if data else None

    def _work(self, now: Projection, tree: WorkTree) -> tuple[list[str], Evidence]:
        """What was done since the cycle began, beside the relay: the files, and all of it."""
        began = now.began
        files, committed = changed_files(tree, self._agent.folder, began.head, began.at)
        return files, Evidence(
            commits=count_commits(tree, began.head, committed),
            changed_files=sum(map(is_artefact, files)),
            resolved_loops=count_resolved(now, began.at),
        )

    def _verdict(
        self,
        number: int,
        now: Projection,
        before: Relay | None,
        after: Relay | None,
        evidence: Evidence,
    ) -> Verdict | None:
        """What was done between the two relays; None where there was none before."""
        if after is None:
            return None
        if before is None:
            # Nothing to compare: but who waits for a person waits from the first cycle on.
            alone = compare(after, after, evidence)
            return alone if alone.verdict == Kind.WAITING else None
        found = compare(before, after, evidence)
        if found.verdict != Kind.PROGRESS or evidence.work:
            return found
        # Directives that take turns are a step each time, and lead nowhere.
        for back in range(2, STALL_TURNS + 1):
            earlier = now.ended.get(number - back)
            then = self.relay(earlier.relay) if earlier else None
            again = compare(then, after, evidence) if then else None
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
    ) -> str:
        """What the stage of its topic asked for and it did not have; empty: nothing."""
        if not self._agent.converges or after is None:
            return ""
        stage = convergence.stage_after(now.ended, topic)
        held = convergence.held(stage, after, files, before)
        return "" if held.ok else held.words


def _asks_else(before: Relay | None, after: Relay | None, found: Verdict | None) -> bool:
    """Return whether the relay itself, without any other work, asks for something else."""
    if after is None or after.next_action is None:
        return False
    if before is None:
        return found is None  # the first relay, and it does not wait for a person
    is_step = found is not None and found.verdict == Kind.PROGRESS
    return is_step and compare(before, after, NO_EVIDENCE).verdict == Kind.PROGRESS


def _by_work(before: Relay | None, after: Relay | None, evidence: Evidence) -> Verdict | None:
    if before is None or after is None or evidence.work:
        kind, words = Kind.PROGRESS, evidence.work or "the first cycle"
    else:
        kind, words = Kind.STALLED, "the agent wrote no relay, and nothing was seen to be done"
    about = one_line(after.next_action or "", _DID) if after else ""
    return Verdict(kind, (words,), about)
