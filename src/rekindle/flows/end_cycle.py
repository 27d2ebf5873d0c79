"""A cycle ends: its relay is written, held against the one before, and what happened is said.

The relay is the agent's draft, or what it made of the relay's own file; else a summary of what it
did; else the old one with what is known of the work. Whoever is killed in between begins again:
what is committed already is known by its place in the log, and is not committed twice.
"""

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle.documents import event as events
from rekindle.documents import primer, summary
from rekindle.documents import relay as relays
from rekindle.documents.relay import Field, Relay
from rekindle.documents.transcript import Turn
from rekindle.errors import (
    CheckFailedError,
    DocumentError,
    ManifestError,
    SummaryError,
)
from rekindle.flows.judge_cycle import JudgeCycle
from rekindle.flows.own_relay import OwnRelay
from rekindle.flows.session_turns import session_turns
from rekindle.flows.summarize import Made, Summarize, document, noted
from rekindle.flows.until import UntilResult
from rekindle.flows.world import Agent, Trouble, World
from rekindle.policy import sessions
from rekindle.policy.budget import Spent
from rekindle.policy.claimed_end import claims_end
from rekindle.policy.fold import Projection
from rekindle.policy.loop import Reviewed, reviewed
from rekindle.policy.settings import RELAY_BYTES, STOP_SECONDS
from rekindle.stores.files.writer import Writer
from rekindle.summarizers.mechanical import Known, summarize
from rekindle.system import disk

HOW = {"agent": "draft", "summary": "summary", "carried": "carried"}
"""Who has committed the relay of a cycle, and what it is then called."""
_GO_ON = "Go on with the task."


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of a cycle needs of whoever put all this together."""

    summarizer: Callable[[], Summarize]
    checkpointer: Callable[[], Summarize]
    """The same for a checkpoint, which another persona may be named for."""
    known: Callable[[str], Known]
    """What is known of the work since a commit, without reading a transcript."""
    until: Callable[[], UntilResult]
    """Whether all is done, as the command of `until:` says."""
    review: Callable[[int, str, Spent], events.ReviewMade | None] = lambda *_: None
    """Have another persona verify the end of a cycle, by its relay; None: no review is set up."""


class EndCycle:
    def __init__(self, agent: Agent, world: World, ending: Ending) -> None:
        self._agent, self._world, self._ending = agent, world, ending
        self._store, self._judge = world.store, JudgeCycle(agent, world)
        self._own = OwnRelay(agent, world)

    def end(self, number: int) -> events.CycleEnded:
        """Write the relay of a cycle; returns the event that ends it, which is not in the log yet.

        With it goes what follows from it: between the two, another supervisor would go on.
        """
        with self._store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            before = writer.projection
            how = self._committed(writer) or self._by_the_agent(writer)
        how = how or self._by_us(number, before)
        if self._agent.relay:
            self._own.show()
        now = self._store.read(self._agent.name).committed
        relay = self._judge.current_relay(now)
        claimed = relay is not None and claims_end(relay)
        is_asked = claimed or not self._agent.until_claimed
        until = self._ending.until() if is_asked else UntilResult()
        is_end = until.verdict == "passed" or (claimed and not until.verdict)
        review = self._review(number, now, relay) if is_end else Reviewed()
        return self._judge.ended(number, now, how=how, until=until, claimed=claimed, review=review)

    def _review(self, number: int, now: Projection, relay: Relay | None) -> Reviewed:
        """Return the review of a reported end; one that the log has is not made again."""
        if now.reviewed.cycle == number and now.reviewed.seq > now.began.seq:
            return now.reviewed
        text = relays.render(relay) if relay else ""
        made = self._ending.review(number, text, now.run.spent_of_run())
        if made is None:
            return Reviewed()
        with self._store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.append(made)
        if made.verdict == "unavailable":
            self._world.tell(Trouble(f"the review could not be made: {made.words}"))
        return reviewed(made)

    def _committed(self, writer: Writer) -> str:
        """How this cycle's relay came about, if a supervisor that is gone has committed it."""
        standing = writer.projection.documents.get("relay")
        is_ours = standing is not None and standing.seq > writer.projection.began.seq
        return HOW.get(standing.by, "") if standing and is_ours else ""

    def _by_the_agent(self, writer: Writer) -> str:
        """What the agent has written, if it can be used; what cannot is kept beside it."""
        path, standing = writer.folder.draft, writer.projection.documents.get("relay")
        is_new = standing is not None and standing.seq > writer.projection.began.seq
        draft = self._own.read_new() if self._agent.relay else self._draft(writer, path)
        if draft is not None:
            try:
                found = relays.parse(draft)
                if standing and is_new and standing.is_said:
                    # A person has said meanwhile what comes next: the agent could not know.
                    found = _with_directive(found, self._judge.relay(standing.path))
                writer.commit_relay(found, by="agent")
            except (DocumentError, CheckFailedError) as error:
                if self._agent.relay:
                    disk.replace(path, draft)  # kept beside the drafts, as any other
                self._reject(writer, path, str(error))
            else:
                if not self._agent.relay:
                    disk.remove(path)
                return "draft"
        return "edit" if is_new else ""

    def _draft(self, writer: Writer, path: Path) -> bytes | None:
        """What stands there; a folder, a link, a pipe, or what is far too large, is moved aside."""
        try:
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_size <= RELAY_BYTES:
                return disk.read(path)
        except FileNotFoundError:
            return None
        self._reject(writer, path, "it is no plain file of a relay's size", is_plain=False)
        return None

    def _reject(self, writer: Writer, path: Path, why: str, *, is_plain: bool = True) -> None:
        writer.set_aside("relay", path, why, is_plain=is_plain)
        self._world.tell(Trouble(f"the draft of the relay cannot be used, and is kept: {why}"))

    def _by_us(self, number: int, before: Projection) -> str:
        """A summary of what was done, else the old relay with what is known of it."""
        turns = self._turns(number, before)
        known = self._ending.known(before.began.head)
        made = self._made(turns, known)
        if made is not None and made.how == "headless":
            day = self._world.clock().date()
            found = relays.parse(document(made, known, name=self._agent.name, day=day))
            by = "summary"
        else:
            found, by = self._carried(before, turns, known), "carried"
        with self._store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if made is not None and made.was_asked:
                spent = writer.projection.run.spent_of_run()
                writer.append(noted(made, ts=self._world.clock(), spent=spent))
            try:
                writer.commit_relay(found, by=by)
            except CheckFailedError as error:
                self._world.tell(Trouble(str(error)))
                return ""
        return by

    def _made(self, turns: list[Turn], known: Known) -> Made | None:
        if not turns:
            return None
        try:
            return self._ending.summarizer().make("relay", turns, known)
        except (SummaryError, ManifestError) as error:
            self._world.tell(Trouble(str(error)))
        return None

    def _carried(self, before: Projection, turns: list[Turn], known: Known) -> Relay:
        standing = before.documents.get("relay")
        old = self._judge.relay(standing.path) if standing else None
        kept = old or relays.compose({Field.NEXT_ACTION: _GO_ON})
        if claims_end(kept):
            # That report is of an earlier cycle: this one has reported nothing.
            kept = kept.with_content(Field.NEXT_ACTION, f"{_GO_ON}\n\n")
        items = summarize("relay", turns, known).sections[Field.WHAT_WE_DID]
        kept = kept.with_content(Field.WHAT_WE_DID, f"{summary.bullets(items)}\n\n")
        if answers := before.answers_since:
            # No relay says what follows from it: it must not be asked for again.
            told = "\n".join(primer.answered(one.asked, one.text) for one in answers)
            kept = kept.with_content(Field.NEXT_ACTION, f"{told}\nGo on with that.\n\n")
        return kept

    def _turns(self, number: int, known: Projection) -> list[Turn]:
        """What was said and done in the sessions of a cycle, since its last checkpoint."""
        tried = sessions.of_cycle(known.attempts, number).values()
        standing = known.documents.get("checkpoint")
        since = standing.seq if standing else 0
        wanted = [one.session for one in tried if one.ended_seq > since]
        return session_turns(self._agent, self._world, wanted)


def _with_directive(draft: Relay, said: Relay | None) -> Relay:
    directive = said.next_action if said else None
    return draft.with_content(Field.NEXT_ACTION, f"{directive}\n\n") if directive else draft
