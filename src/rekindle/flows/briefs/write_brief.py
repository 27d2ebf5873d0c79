"""Write an agent's brief from the turns and changes since the last one.

Only new parts of the archived transcripts are read. A summarizer is asked about them, and its
answer is checked against the turns. The brief, the loops, the numbers, the reported positions and
the cost are then appended to the log in one write. A crash before that write changes nothing; after
it, the next brief continues from there.

If no model is available, or its answer cannot be used, the loops stay unchanged, and the brief is
assembled without a model and notes this. The next brief then reads the same turns again: without
limit while no model answers, a few times if its answers are unusable.

No model is asked before the agent's log is writable. The cost is recorded even if the brief fails,
and a failed brief is retried after a growing pause.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Literal

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.documents.brief import (
    Brief,
    BriefLabel,
)
from rekindle.documents.events import AnyEvent
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.documents.state import parse_time
from rekindle.documents.summaries import day_summary as days
from rekindle.documents.summaries.day_summary import DaySummary
from rekindle.documents.summaries.summary import list_carried_items, make_line
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import (
    BusyError,
    DocumentError,
    NotFoundError,
    OverBudgetError,
    RekindleError,
)
from rekindle.flows.briefs.unreported_turns import (
    SupervisedSessions,
    UnreportedTurns,
)
from rekindle.flows.transcripts.summarize_turns import ask_twice
from rekindle.policy.briefs import brief_page as policy
from rekindle.policy.briefs import brief_request, brief_schedule
from rekindle.policy.briefs.brief_schedule import DueBrief
from rekindle.policy.briefs.claim_check import GitWork
from rekindle.policy.briefs.loop_changes import (
    AnswerSources,
    LoopChanges,
    settle_loops,
)
from rekindle.policy.exits import reason_text, stop_reasons
from rekindle.policy.exits.backoff import double_pause
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.fold import (
    Projection,
    fold_events,
)
from rekindle.policy.settings.runtime_settings import (
    BRIEF_PIECES,
    BRIEF_RETRY_MOST_SECONDS,
    BRIEF_RETRY_SECONDS,
    BRIEF_TURN_CHARACTERS,
    BRIEF_UNUSABLE,
    STOP_SECONDS,
    RuntimeSettings,
)
from rekindle.policy.setup.adoption import ResolvedLine
from rekindle.policy.summaries.attribution import SourceTexts
from rekindle.policy.summaries.summary_request import SummaryRequest
from rekindle.policy.supervision.run_moves import is_done
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.stores.files.writer import Writer
from rekindle.summarizers.mechanical_summary import (
    KnownWork,
    TurnDigest,
    summarize_digest,
)
from rekindle.system.files import durable_files, file_locks


class BriefPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The ports and settings that a brief writer needs."""

    ask: Callable[[SummaryRequest], OneShotAnswer] | None
    """Ask the summarizer; None if no summarizer is configured."""
    words: str = ""
    """Extra instructions for the summarizer's model."""
    archive: Callable[[], None]
    """Archive the new parts of the session transcripts."""
    work: Callable[[datetime | None], GitWork]
    """Return the work that git shows since a given time."""
    clock: Callable[[], datetime]
    zone: tzinfo
    runtime: RuntimeSettings
    task: str = ""
    """The task that the supervisor gives to every session."""
    asks: bool = True
    """Whether the supervisor prompts the sessions; False if a person does."""
    nonce: Callable[[], str] = lambda: secrets.token_hex(16)


class BriefResult(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    is_new: bool
    """Whether the brief changed."""
    how: str = ""
    """`headless` or `mechanical`; empty if there were no new turns."""
    words: str = ""
    """Why no model wrote the brief."""
    turns: int = 0
    left_out: int = 0
    read_bytes: int = 0
    """Bytes of archived transcripts that were read."""
    opened: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Loops that another tool resolved and that this agent does not have."""
    usd: float = 0.0
    tokens: int = 0


class BriefAttempts(msgspec.Struct, frozen=True):
    """Failed attempts at writing the next brief."""

    seq: int = 0
    """Sequence number of the previous brief."""
    tries: int = 0
    at: datetime | None = None

    def is_resting(self, now: datetime) -> bool:
        if self.at is None:
            return False
        pause = double_pause(BRIEF_RETRY_SECONDS, self.tries, BRIEF_RETRY_MOST_SECONDS)
        return abs((now - self.at).total_seconds()) < pause


class _BriefMaterial(msgspec.Struct, frozen=True, kw_only=True):
    """The new turns, and the summarizer's answer about them."""

    seen: Projection
    """The projection at the time the material was collected."""
    now: datetime
    due: DueBrief | None
    news: UnreportedTurns
    gist: TurnDigest
    turns: tuple[Turn, ...]
    work: GitWork = GitWork()
    day: DaySummary = DaySummary()
    asked: bool = False
    words: str = ""
    is_unusable: bool = False
    """Whether the summarizer's answer could not be used."""
    left_out: int = 0
    usd: float = 0.0
    tokens: int = 0

    @property
    def how(self) -> Literal["headless", "mechanical", ""]:
        if not self.turns:
            return ""
        return "headless" if self.asked and not self.words else "mechanical"


class BriefWriter:
    def __init__(self, store: FileStore, agent: str, around: BriefPorts) -> None:
        self._store, self._agent, self._ports = store, agent, around

    def due(self) -> DueBrief | None:
        """Return the brief that is due by the clock or after a session's end, or None."""
        projection, now = self._store.read(self._agent).projection, self._ports.clock()
        if self._read_attempts(projection.briefed.seq).is_resting(now):
            return None
        return brief_schedule.find_due_brief(
            now,
            self._ports.zone,
            self._ports.runtime.brief,
            projection.briefed,
            lives=projection.lives,
            attempts=projection.attempts,
            last_active=projection.last_active,
        )

    def write(self, due: DueBrief | None = None) -> BriefResult:
        """Write a brief. Without `due`, the operator requested it.

        Raises:
            NotFoundError: The operator requested a brief, and nothing is recorded for the agent.
        """
        with self._hold_lock():
            with suppress(BusyError):  # another process is archiving: use the archive as it is
                self._ports.archive()
            looked = self._collect_material(due)
            if due is None:
                self._require_content(looked)
            if looked.turns or due:
                self._record_attempt()
            if self._ports.ask and looked.turns:
                looked = self._ask_model(self._ports.ask, looked)
            try:
                with self._store.writer(self._agent, wait=STOP_SECONDS) as writer:
                    writer.fold()
                    return self._commit_brief(writer, looked)
            except RekindleError:
                self._record_lost_spending(looked)
                raise

    def _record_attempt(self) -> None:
        """Check that the log is writable, and record the attempt.

        Raises:
            RekindleError: The log is not writable. No model is asked.
        """
        with self._store.writer(self._agent, wait=STOP_SECONDS) as writer:
            writer.fold()
            seq = writer.projection.briefed.seq
        before = self._read_attempts(seq)
        now = BriefAttempts(seq, before.tries + 1, self._ports.clock())
        path = self._store.folder(self._agent).brief_tried
        durable_files.replace_file(path, msgspec.json.encode(now))

    def _read_attempts(self, seq: int) -> "BriefAttempts":
        data = durable_files.read_bytes(self._store.folder(self._agent).brief_tried)
        with suppress(msgspec.MsgspecError):
            attempts = msgspec.json.decode(data or b"", type=BriefAttempts)
            return attempts if attempts.seq == seq else BriefAttempts(seq)
        return BriefAttempts(seq)

    def _record_lost_spending(self, looked: _BriefMaterial) -> None:
        """Record the cost of an answer that did not lead to a brief."""
        if not looked.usd and not looked.tokens:
            return
        with (
            suppress(RekindleError),
            self._store.writer(self._agent, wait=STOP_SECONDS) as writer,
        ):
            if writer.projection.briefed.ts != looked.now:
                writer.append(_make_spend_event(looked))

    def _require_content(self, looked: _BriefMaterial) -> None:
        """Raise NotFoundError for an empty brief, because every session would be shown it."""
        seen = looked.seen
        content = seen.documents or seen.loops or seen.numbers or seen.run.refused_call_count()
        if not (looked.turns or looked.news.told or content):
            raise NotFoundError(
                f"no session of {self._agent} has any turns yet",
                hint=f"`rekindle run {self._agent}` starts one; hooks report your own sessions",
            )

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        folder = self._store.folder(self._agent)
        self._store.create(self._agent)
        with file_locks.hold_lock(folder.briefing, 0.0) as lock:
            if lock is None:
                raise BusyError(self._agent, 0.0)
            yield

    def _count_room(self) -> int:
        """Return the number of characters of turns that fit into the requests of a brief."""
        cap = self._ports.runtime.relay.summarizer_max_input_tokens
        return cap * BRIEF_PIECES * BRIEF_TURN_CHARACTERS

    def _collect_material(self, due: DueBrief | None) -> _BriefMaterial:
        # The next brief reports events after this moment.
        now = self._ports.clock()
        seen = self._store.read(self._agent).projection
        archive = TranscriptArchive(self._store.folder(self._agent).transcripts)
        task = self._store.redaction.text(self._ports.task)
        ours = SupervisedSessions(
            _select_supervised(seen) if self._ports.asks else frozenset(), task
        )
        news, gist = (
            UnreportedTurns(archive, seen.briefed, now, self._count_room(), ours),
            TurnDigest(),
        )
        turns = tuple(gist.of(news.turns))
        began = next((at for turn in turns if (at := parse_time(turn.at))), None)
        return _BriefMaterial(
            seen=seen,
            now=now,
            due=due,
            news=news,
            gist=gist,
            turns=turns,
            work=self._ports.work(began) if turns else GitWork(),
            left_out=news.left_out,
        )

    def _ask_model(
        self, ask: Callable[[SummaryRequest], OneShotAnswer], looked: _BriefMaterial
    ) -> _BriefMaterial:
        """Ask about each piece, newest first, and stop at the first piece without an answer.

        Turns beyond the cost cap of a brief are left out and counted.
        """
        try:
            asked = self._build_requests(looked)
        except OverBudgetError as error:
            return msgspec.structs.replace(looked, asked=True, words=str(error))
        summaries: list[DaySummary] = []
        usd, tokens, words, left_out, is_unusable = 0.0, 0, "", asked.left_out, False
        cap, whole = self._ports.runtime.relay.summarizer_max_usd, self._ports.runtime.brief
        for request in reversed(asked.requests):
            if usd >= whole.max_usd:
                left_out += len(request.turns)
                continue
            # An answer may cost up to its own cap, but not more than the brief has left.
            before = max(0.0, cap - (whole.max_usd - usd))
            capped = msgspec.structs.replace(request, spent=before)
            reply = ask_twice(ask, capped, partial(days.parse, turns=request.numbers))
            usd, tokens, words = usd + reply.usd, tokens + reply.tokens, reply.words
            if reply.found is None:
                is_unusable = reply.is_unusable
                break
            summaries.append(reply.found)
        return msgspec.structs.replace(
            looked,
            day=brief_request.merge_days(summaries[::-1]),
            asked=True,
            words=self._store.redaction.text(words),
            is_unusable=is_unusable,
            left_out=looked.left_out + left_out,
            usd=usd,
            tokens=tokens,
        )

    def _build_requests(self, looked: _BriefMaterial) -> brief_request.BriefRequests:
        limits, seen, now = self._ports.runtime, looked.seen, looked.now
        before = brief_request.KnownState(
            open_loops.list_open_loops(seen.loops, now, limits.loops),
            open_loops.list_recently_resolved(seen.loops, now, limits.loops),
            {key: number.value for key, number in seen.numbers.items()},
        )
        return brief_request.build_brief_requests(
            looked.turns,
            before,
            nonce=self._ports.nonce(),
            cap=limits.relay.summarizer_max_input_tokens,
            words=self._ports.words,
        )

    def _commit_brief(self, writer: Writer, looked: _BriefMaterial) -> BriefResult:
        """Apply the answer to the current projection, and commit loops and brief in one write."""
        closings, is_news = writer.rotate_resolutions()
        closed = tuple(_resolve_foreign(writer.projection, closings, looked.now))
        unknown_ids = {
            closing.id for closing in closings if closing.id not in writer.projection.loops
        }
        known = fold_events(writer.projection, closed)
        heard = SourceTexts(looked.turns)
        settled = settle_loops(known.loops, looked.day, _make_sources(looked, heard), looked.now)
        made = self._make_event(known, settled, looked, heard)
        after = fold_events(known, [*settled.events, made])
        old = self._store.document(self._agent, "brief")
        document = self._compose_document(known, after, looked, heard, _parse_brief(old))
        also: list[AnyEvent] = [*closed, *settled.events, made]
        if looked.asked:
            also.append(_make_spend_event(looked))
        text = self._store.redaction.text(briefs.render(document))
        is_new = old != text.encode()
        closes = made.closes and known.briefed.closed.morning != made.morning
        if is_new:
            by = "summarizer" if looked.how == "headless" else "machine"
            writer.commit_brief(document, by=by, also=also)
        elif looked.news.told or closed or closes or is_news:
            writer.append(*also)
        writer.project()
        return BriefResult(
            text=text,
            is_new=is_new,
            how=looked.how,
            words="; ".join(_explain_failures(known, looked)),
            turns=len(looked.turns),
            left_out=looked.left_out,
            read_bytes=looked.news.read_bytes,
            opened=_list_loop_ids(settled.events, events.LoopAdded),
            resolved=_list_loop_ids((*closed, *settled.events), events.LoopResolved),
            claimed=tuple(made.claimed),
            unknown=tuple(sorted(unknown_ids)) if is_news else (),
            usd=looked.usd,
            tokens=looked.tokens,
        )

    def _make_event(
        self, known: Projection, settled: LoopChanges, looked: _BriefMaterial, heard: SourceTexts
    ) -> events.BriefMade:
        due, now, limits = looked.due, looked.now, self._ports.runtime.brief
        # If no model was available, the next brief reports these turns again. If a model's answer
        # was unusable, it does so only a limited number of times.
        unusable = known.briefed.unusable + 1 if looked.is_unusable else 0
        fails = bool(looked.words) and not _is_given_up(known, looked)
        open_ids = {
            loop.id for loop in fold_events(known, settled.events).loops.values() if loop.is_open
        }
        claimed = {**known.briefed.claimed, **settled.claimed}
        last = max((at for turn in looked.turns if (at := parse_time(turn.at))), default=None)
        return events.BriefMade(
            ts=now,
            morning=due.morning
            if due
            else brief_schedule.find_next_morning(now, limits.at, self._ports.zone),
            closes=due is not None and due.closes,
            told={} if fails else looked.news.told,
            turns=len(looked.turns),
            left_out=looked.left_out,
            failed=known.briefed.failed + 1 if fails else 0,
            unusable=unusable if fails else 0,
            claimed={key: reason for key, reason in claimed.items() if key in open_ids},
            numbers=policy.select_numbers(known.numbers, looked.day.numbers, looked.turns, heard),
            last_active=min(last, now) if last else None,
            resolved=known.seq,
        )

    def _compose_document(
        self,
        known: Projection,
        after: Projection,
        looked: _BriefMaterial,
        heard: SourceTexts,
        before: Brief | None,
    ) -> Brief:
        limits, now = self._ports.runtime, looked.now
        page = before if known.briefed.morning == after.briefed.morning else None
        is_told = known.briefed.until_morning == after.briefed.morning
        if known.briefed.failed and not is_told:
            page = None  # the previous page was written without a model: replace it
        changed, following = self._render_changes(looked, heard)
        if looked.words and page and not looked.day.changed:
            changed = []  # keep the page unchanged, and let a later brief complete it
        risk = tuple(item.text for item in heard.items(looked.day.risk))
        if not looked.turns and page:
            risk = list_carried_items(page.content(BriefLabel.RISK) or "")
        content = policy.BriefContent(
            changed=policy.merge_changes(page, [*changed, *_render_outcome(known, looked)]),
            more=policy.count_left_out(page),
            next=""
            if is_done(known.run)  # finished work has no next step, even if its relay names one
            else following or (before and before.content(BriefLabel.NEXT)) or "not known",
            risk=(*_render_notes(known, looked), *risk),
            open=open_loops.list_open_loops(after.loops, now, limits.loops),
            claimed=after.briefed.claimed,
            numbers={key: number.value for key, number in after.numbers.items()},
        )
        day = now.astimezone(self._ports.zone).date()
        return policy.compose_brief(self._agent, day, content, limits.brief.max_tokens)

    def _render_changes(self, looked: _BriefMaterial, heard: SourceTexts) -> tuple[list[str], str]:
        """Return the changes and the next step; without turns, use the ended cycles."""
        if not looked.turns:
            last_brief = looked.seen.briefed.ts
            cycles = [
                cycle
                for cycle in looked.seen.ended.values()
                if last_brief is None or cycle.ts > last_brief
            ]
            did = [f"cycle {cycle.cycle}: {cycle.did}" for cycle in cycles if cycle.did]
            return did, self._read_next_action() if cycles else ""
        work = looked.work
        steps = heard.instructions(looked.day.next, BriefLabel.NEXT)
        following = steps[0].text if steps else self._read_next_action()
        if looked.day.changed or looked.how == "headless":
            return policy.mark_claims(looked.day.changed, looked.turns, work, heard), following
        known = KnownWork(commits=work.commits, changed=work.changed, next_action=following)
        plain = summarize_digest("brief", looked.gist, known).sections
        return [item.text for item in plain[BriefLabel.CHANGED]], plain[BriefLabel.NEXT][0].text

    def _read_next_action(self) -> str:
        data = self._store.document(self._agent, "relay")
        try:
            next_action = relays.parse(data).next_action if data else None
        except DocumentError:
            next_action = None
        return (next_action or "").strip().split("\n", 1)[0]


def _select_supervised(known: Projection) -> frozenset[str]:
    """Return the recorded sessions that a supervisor started."""
    launched = {launch.session for launch in known.attempts.values()}
    return frozenset(launched | {name for name, life in known.lives.items() if life.launch})


def _parse_brief(data: bytes | None) -> Brief | None:
    try:
        return briefs.parse(data) if data else None
    except DocumentError:
        return None


def _make_sources(looked: _BriefMaterial, heard: SourceTexts) -> AnswerSources:
    texts = {loop.id: loop.text for loop in looked.seen.loops.values() if loop.is_open}
    return AnswerSources({turn.number: turn for turn in looked.turns}, heard, texts)


def _make_spend_event(looked: _BriefMaterial) -> events.SummaryMade:
    return events.SummaryMade(
        ts=looked.now,
        document="brief",
        how=looked.how,
        words=looked.words,
        turns=len(looked.turns),
        usd=looked.usd,
        tokens=looked.tokens,
    )


def _is_given_up(known: Projection, looked: _BriefMaterial) -> bool:
    return looked.is_unusable and known.briefed.unusable + 1 >= BRIEF_UNUSABLE


def _explain_failures(known: Projection, looked: _BriefMaterial) -> list[str]:
    """Return why no model wrote the brief, and whether the turns are given up."""
    if not looked.words:
        return []
    given_up = f"after {BRIEF_UNUSABLE} unusable answers, these turns are not read again"
    return [looked.words, given_up] if _is_given_up(known, looked) else [looked.words]


def _render_notes(known: Projection, looked: _BriefMaterial) -> list[str]:
    words = "; ".join(_explain_failures(known, looked))
    notes = [f"no model could read all of this: {words}"] if words else []
    if count := known.run.refused_call_count():
        calls = f"{count} tool call{'' if count == 1 else 's'}"
        notes.append(f"{calls} of this run: refused, no permission")
    if looked.news.unread:
        notes.append(
            f"{looked.news.unread:,} sessions from long before the first brief are not included"
        )
    if looked.left_out:
        notes.append(f"{looked.left_out:,} of the oldest turns did not fit and were left out")
    return notes


def _render_outcome(known: Projection, looked: _BriefMaterial) -> list[str]:
    """Return a line about the end of the run, if it is new or there are new turns."""
    run = known.run
    if not run.is_over or not (looked.turns or run.ended.seq > known.briefed.seq):
        return []
    outcome = stop_reasons.find_outcome(run.ended.why).words
    reason = reason_text.explain_reason(run.ended.why, run.ended.words)
    return [make_line(f"the run ended: {outcome} ({reason})")]


def _list_loop_ids(
    happened: Iterable[events.LoopAdded | events.LoopResolved], kind: type
) -> tuple[str, ...]:
    return tuple(event.id for event in happened if isinstance(event, kind))


def _resolve_foreign(
    known: Projection, closings: Iterable[ResolvedLine], now: datetime
) -> Iterator[events.LoopResolved]:
    """Yield resolutions by other tools at their own time. A loop reopened later stays open."""
    for closing in closings:
        loop = known.loops.get(closing.id)
        when = min(closing.when or now, now)
        if loop is None or not loop.is_open:
            continue
        began = loop.opened_at
        # Tools write whole seconds, so a loop opened within the same second was opened first.
        if when > began or when == began.replace(microsecond=0):
            later = max(when, began + timedelta(microseconds=1))
            yield events.LoopResolved(ts=later, id=closing.id, reason=closing.reason)
