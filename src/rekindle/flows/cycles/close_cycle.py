"""Close a cycle: commit its relay, compare it with the previous one, and build the final event.

The relay is the agent's draft, or its edit of the relay file. If the agent wrote neither, the relay
is a summary of the session or, as a last resort, the old relay plus the observed work. After a
crash, the next supervisor starts again, and checks the log first so that a relay is never committed
twice.
"""

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle.documents import events, primer
from rekindle.documents import relay as relays
from rekindle.documents.relay import Relay, RelayField
from rekindle.documents.summaries import summary
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import CheckFailedError, DocumentError, ManifestError, SummaryError
from rekindle.flows.cycles.ask_opinion import OpinionAsker
from rekindle.flows.cycles.judge_cycle import CycleJudge
from rekindle.flows.cycles.own_relay import OwnRelay
from rekindle.flows.launches.checked_command import CommandResult
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.flows.transcripts.session_turns import read_session_turns
from rekindle.flows.transcripts.summarize_turns import (
    Summarizer,
    SummaryResult,
    make_summary_event,
    render_document,
)
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.relay.claimed_end import reports_all_done
from rekindle.policy.settings.runtime_settings import RELAY_BYTES, STOP_SECONDS
from rekindle.policy.stall.stall_response import LastReview, record_review
from rekindle.policy.supervision.budget import RunSpending
from rekindle.stores.files.writer import Writer
from rekindle.summarizers.mechanical_summary import KnownWork, summarize_mechanically
from rekindle.system.files import durable_files

RELAY_ORIGINS = {"agent": "draft", "summary": "summary", "carried": "carried"}
"""Relay origins, by the author of the committed relay."""
_CONTINUE = "Continue the task."


class CycleEndPorts(msgspec.Struct, frozen=True, kw_only=True):
    """Functions needed to end a cycle."""

    summarizer: Callable[[], Summarizer]
    checkpointer: Callable[[], Summarizer]
    """Returns the summarizer for checkpoints, which may use another persona."""
    known: Callable[[str], KnownWork]
    """Returns the work done since a commit, without reading any transcript."""
    until: Callable[[], CommandResult]
    """Runs the `until:` command, which checks whether the work is done."""
    review: Callable[[int, str, RunSpending], events.ReviewMade | None] = lambda *_: None
    """Asks another persona to verify that the work is done; None if there is no reviewer."""


class CycleCloser:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts, ending: CycleEndPorts) -> None:
        self._agent, self._ports, self._ending = agent, world, ending
        self._store, self._judge = world.store, CycleJudge(agent, world)
        self._own = OwnRelay(agent, world)
        self._opinions = OpinionAsker(agent, world, ending.summarizer)

    def end(self, number: int) -> events.CycleEnded:
        """Commit the cycle's relay, and return the final event for the caller to append.

        The caller appends the event and its consequences in one write. With two writes, another
        supervisor could take over in between.
        """
        with self._store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            before = writer.projection
            how = self._find_committed(writer) or self._commit_draft(writer)
        how = how or self._commit_summary(number, before)
        if self._agent.relay:
            self._own.show()
        now = self._store.read(self._agent.name).committed
        relay = self._judge.read_current_relay(now)
        claimed = relay is not None and self._judge.reports_end(now, relay, how)
        is_asked = claimed or not self._agent.until_claimed
        until = self._ending.until() if is_asked else CommandResult()
        is_end = until.verdict == "passed" or (claimed and not until.verdict)
        review = self._review(number, now, relay) if is_end else LastReview()
        ended = self._judge.ended(number, now, how=how, until=until, claimed=claimed, review=review)
        return self._opinions.add(ended, relay, now)

    def _review(self, number: int, now: Projection, relay: Relay | None) -> LastReview:
        """Return the review of a reported end. If there already was one, read it from the log."""
        if now.reviewed.cycle == number and now.reviewed.seq > now.began.seq:
            return now.reviewed
        text = relays.render(relay) if relay else ""
        review = self._ending.review(number, text, now.run.run_spending())
        if review is None:
            return LastReview()
        with self._store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.append(review)
        if review.verdict == "unavailable":
            self._ports.tell(TroubleReport(f"the review failed: {review.words}"))
        return record_review(review)

    def _find_committed(self, writer: Writer) -> str:
        """Return the origin of the relay already committed for this cycle, or ""."""
        committed = writer.projection.documents.get("relay")
        is_ours = committed is not None and committed.seq > writer.projection.began.seq
        return RELAY_ORIGINS.get(committed.by, "") if committed and is_ours else ""

    def _commit_draft(self, writer: Writer) -> str:
        """Commit the agent's draft and return its origin. Move an invalid draft aside."""
        path, committed = writer.folder.draft, writer.projection.documents.get("relay")
        is_new = committed is not None and committed.seq > writer.projection.began.seq
        draft = self._own.read_new() if self._agent.relay else self._read_draft(writer, path)
        if draft is not None:
            try:
                relay = relays.parse(draft)
                if committed and is_new and committed.is_said:
                    # The operator set the next action in the meantime, so the agent's draft does
                    # not include it.
                    relay = _with_directive(relay, self._judge.relay(committed.path))
                writer.commit_relay(relay, by="agent")
            except (DocumentError, CheckFailedError) as error:
                if self._agent.relay:
                    # Keep a copy next to the other rejected drafts.
                    durable_files.replace_file(path, draft)
                self._reject_draft(writer, path, str(error))
            else:
                if not self._agent.relay:
                    durable_files.remove_file(path)
                return "draft"
        return "edit" if is_new else ""

    def _read_draft(self, writer: Writer, path: Path) -> bytes | None:
        """Return the draft, or None. Move it aside if it is too large or not a regular file."""
        try:
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size <= RELAY_BYTES:
                return durable_files.read_bytes(path)
        except FileNotFoundError:
            return None
        self._reject_draft(writer, path, "it is too large or not a regular file", is_plain=False)
        return None

    def _reject_draft(self, writer: Writer, path: Path, why: str, *, is_plain: bool = True) -> None:
        writer.set_aside("relay", path, why, is_plain=is_plain)
        self._ports.tell(TroubleReport(f"the relay draft was invalid and was set aside: {why}"))

    def _commit_summary(self, number: int, before: Projection) -> str:
        """Commit a summary of the cycle or, failing that, the old relay plus the observed work."""
        turns = self._read_turns(number, before)
        known = self._ending.known(before.began.head)
        result = self._make_summary(turns, known)
        if result is not None and result.how == "headless":
            day = self._ports.clock().date()
            relay = relays.parse(render_document(result, known, name=self._agent.name, day=day))
            by = "summary"
        else:
            relay, by = self._carry_relay(before, turns, known), "carried"
        with self._store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if result is not None and result.was_asked:
                spent = writer.projection.run.run_spending()
                writer.append(make_summary_event(result, ts=self._ports.clock(), spent=spent))
            with self._ports.report_trouble(CheckFailedError):
                writer.commit_relay(relay, by=by)
                return by
        return ""

    def _make_summary(self, turns: list[Turn], known: KnownWork) -> SummaryResult | None:
        if not turns:
            return None
        with self._ports.report_trouble((SummaryError, ManifestError)):
            return self._ending.summarizer().make("relay", turns, known)
        return None

    def _carry_relay(self, before: Projection, turns: list[Turn], known: KnownWork) -> Relay:
        committed = before.documents.get("relay")
        old = self._judge.relay(committed.path) if committed else None
        relay = old or relays.compose({RelayField.NEXT_ACTION: _CONTINUE})
        if reports_all_done(relay):
            # An earlier cycle reported that all work is done, but this one did not.
            relay = relay.with_content(RelayField.NEXT_ACTION, f"{_CONTINUE}\n\n")
        items = summarize_mechanically("relay", turns, known).sections[RelayField.WHAT_WE_DID]
        relay = relay.with_content(RelayField.WHAT_WE_DID, f"{summary.render_bullets(items)}\n\n")
        if answers := before.new_answers:
            # No relay contains these answers yet. Without them, the agent would ask again.
            rendered = "\n".join(
                primer.render_answer(answer.asked, answer.text) for answer in answers
            )
            relay = relay.with_content(
                RelayField.NEXT_ACTION, f"{rendered}\nContinue with that.\n\n"
            )
        return relay

    def _read_turns(self, number: int, known: Projection) -> list[Turn]:
        """Return this cycle's turns since its last checkpoint."""
        tried = sessions.select_cycle_launches(known.attempts, number).values()
        checkpoint = known.documents.get("checkpoint")
        since = checkpoint.seq if checkpoint else 0
        session_ids = [launch.session for launch in tried if launch.ended_seq > since]
        return read_session_turns(self._agent, self._ports, session_ids)


def _with_directive(draft: Relay, current: Relay | None) -> Relay:
    directive = current.next_action if current else None
    return draft.with_content(RelayField.NEXT_ACTION, f"{directive}\n\n") if directive else draft
