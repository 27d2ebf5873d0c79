"""Write an agent's brief from the turns and changes since the last one.

Only the new parts of the archived transcripts are read. A model summarizes them, and its answer is
checked against the turns. The brief and everything that belongs to it are then appended to the log
in a single write, so a crash leaves either all of it or nothing.

If no model is available, or its answer is unusable, the brief is written without a model and the
loops stay unchanged. The next brief then covers the same turns again. This is repeated until a
model answers, but only a few times if its answers are unusable.

The model is asked only after a check that the log is writable. Its cost is recorded even if the
brief fails, and a failed brief is retried after a growing delay.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import events
from rekindle.documents.events import AnyEvent
from rekindle.documents.state import parse_time
from rekindle.errors import BusyError, NotFoundError, RekindleError
from rekindle.flows.briefs.brief_attempts import read_attempts, record_attempt
from rekindle.flows.briefs.brief_material import BriefMaterial, BriefPorts, MaterialCollector
from rekindle.flows.briefs.compose_brief import BriefComposer, explain_failures, is_given_up
from rekindle.flows.read_documents import parse_brief
from rekindle.policy.briefs import brief_content as policy
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.briefs.brief_schedule import DueBrief
from rekindle.policy.briefs.loop_changes import AnswerSources, LoopChanges, settle_loops
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.policy.setup.adoption import ResolvedLine
from rekindle.policy.summaries.attribution import SourceTexts
from rekindle.stores.files import FileStore
from rekindle.stores.files.writer import Writer
from rekindle.system.files import file_locks


class BriefResult(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    is_new: bool
    """Whether the brief differs from the previous one."""
    how: str = ""
    """`headless` (by a model) or `mechanical` (without one); empty if there are no new turns."""
    words: str = ""
    """Reason why no model wrote the brief; empty if one did."""
    turns: int = 0
    left_out: int = 0
    read_bytes: int = 0
    """Bytes read from the archived transcripts."""
    opened: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Ids of loops that another tool resolved but this agent does not have."""
    usd: float = 0.0
    tokens: int = 0


class BriefWriter:
    def __init__(self, store: FileStore, agent: str, ports: BriefPorts) -> None:
        self._store, self._agent, self._ports = store, agent, ports
        self._material = MaterialCollector(store, agent, ports)
        self._composer = BriefComposer(store, agent, ports)
        self._attempts_file = store.folder(agent).brief_tried

    def due(self) -> DueBrief | None:
        """Return the brief that is due (by schedule or because a session ended), or None."""
        projection, now = self._store.read(self._agent).projection, self._ports.clock()
        if read_attempts(self._attempts_file, projection.briefed.seq).is_resting(now):
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
        """Write a brief. If `due` is None, the operator requested it.

        Raises:
          NotFoundError: The operator requested a brief, but nothing is recorded for the agent.
        """
        with self._hold_lock():
            with suppress(BusyError):  # another process is archiving, so use the archive as it is
                self._ports.archive()
            material = self._material.collect(due)
            if due is None:
                self._require_content(material)
            if material.turns or due:
                self._record_attempt()
            material = self._material.ask_model(material)
            try:
                with self._store.writer(self._agent, wait=STOP_SECONDS) as writer:
                    writer.fold()
                    return self._commit_brief(writer, material)
            except RekindleError:
                self._record_lost_spending(material)
                raise

    def _record_attempt(self) -> None:
        """Check that the log is writable, and record the attempt.

        Raises:
            RekindleError: The log is not writable, so no model is asked.
        """
        with self._store.writer(self._agent, wait=STOP_SECONDS) as writer:
            writer.fold()
            seq = writer.projection.briefed.seq
        record_attempt(self._attempts_file, seq, self._ports.clock())

    def _record_lost_spending(self, material: BriefMaterial) -> None:
        """Record the cost of an answer if the brief could not be written."""
        if not material.usd and not material.tokens:
            return
        with (
            suppress(RekindleError),
            self._store.writer(self._agent, wait=STOP_SECONDS) as writer,
        ):
            if writer.projection.briefed.ts != material.now:
                writer.append(_make_spend_event(material))

    def _require_content(self, material: BriefMaterial) -> None:
        """Raise NotFoundError if the brief would be empty. Every new session would read it."""
        projection = material.projection
        content = (
            projection.documents
            or projection.loops
            or projection.numbers
            or projection.run.refused_call_count()
        )
        if not (material.turns or material.unreported.positions or content):
            raise NotFoundError(
                f"no session of {self._agent} has any turns yet",
                hint=f"start one with `rekindle run {self._agent}`, or install hooks to report "
                "the sessions that you start yourself",
            )

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        folder = self._store.folder(self._agent)
        self._store.create(self._agent)
        with file_locks.hold_lock(folder.briefing, 0.0) as lock:
            if lock is None:
                raise BusyError(self._agent, 0.0)
            yield

    def _commit_brief(self, writer: Writer, material: BriefMaterial) -> BriefResult:
        """Apply the model's answer, and commit the loops and the brief in one write."""
        closings, is_news = writer.rotate_resolutions()
        closed = tuple(_resolve_foreign(writer.projection, closings, material.now))
        unknown_ids = {
            closing.id for closing in closings if closing.id not in writer.projection.loops
        }
        projection = fold_events(writer.projection, closed)
        texts = SourceTexts(material.turns)
        settled = settle_loops(
            projection.loops, material.day, _make_sources(material, texts), material.now
        )
        brief_event = self._make_event(projection, settled, material, texts)
        after = fold_events(projection, [*settled.events, brief_event])
        old = self._store.document(self._agent, "brief")
        document = self._composer.compose(projection, after, material, texts, parse_brief(old))
        also: list[AnyEvent] = [*closed, *settled.events, brief_event]
        if material.asked:
            also.append(_make_spend_event(material))
        text = self._store.redaction.text(briefs.render(document))
        is_new = old != text.encode()
        closes = brief_event.closes and projection.briefed.closed.morning != brief_event.morning
        if is_new:
            by = "summarizer" if material.how == "headless" else "machine"
            writer.commit_brief(document, by=by, also=also)
        elif material.unreported.positions or closed or closes or is_news:
            writer.append(*also)
        writer.project()
        return BriefResult(
            text=text,
            is_new=is_new,
            how=material.how,
            words="; ".join(explain_failures(projection, material)),
            turns=len(material.turns),
            left_out=material.left_out,
            read_bytes=material.unreported.read_bytes,
            opened=_list_loop_ids(settled.events, events.LoopAdded),
            resolved=_list_loop_ids((*closed, *settled.events), events.LoopResolved),
            claimed=tuple(brief_event.claimed),
            unknown=tuple(sorted(unknown_ids)) if is_news else (),
            usd=material.usd,
            tokens=material.tokens,
        )

    def _make_event(
        self,
        projection: Projection,
        settled: LoopChanges,
        material: BriefMaterial,
        texts: SourceTexts,
    ) -> events.BriefMade:
        due, now, limits = material.due, material.now, self._ports.runtime.brief
        # If no model was available, the next brief covers these turns again. If the answer was
        # unusable, this happens only a few times.
        unusable = projection.briefed.unusable + 1 if material.is_unusable else 0
        fails = bool(material.words) and not is_given_up(projection, material)
        open_ids = {
            loop.id
            for loop in fold_events(projection, settled.events).loops.values()
            if loop.is_open
        }
        claimed = {**projection.briefed.claimed, **settled.claimed}
        last = max((at for turn in material.turns if (at := parse_time(turn.at))), default=None)
        return events.BriefMade(
            ts=now,
            morning=due.morning
            if due
            else brief_schedule.find_next_morning(now, limits.at, self._ports.zone),
            closes=due is not None and due.closes,
            covered={} if fails else material.unreported.positions,
            turns=len(material.turns),
            left_out=material.left_out,
            failed=projection.briefed.failed + 1 if fails else 0,
            unusable=unusable if fails else 0,
            claimed={key: reason for key, reason in claimed.items() if key in open_ids},
            numbers=policy.select_numbers(
                projection.numbers, material.day.numbers, material.turns, texts
            ),
            last_active=min(last, now) if last else None,
            resolved=projection.seq,
        )


def _make_sources(material: BriefMaterial, texts: SourceTexts) -> AnswerSources:
    open_texts = {loop.id: loop.text for loop in material.projection.loops.values() if loop.is_open}
    return AnswerSources({turn.number: turn for turn in material.turns}, texts, open_texts)


def _make_spend_event(material: BriefMaterial) -> events.SummaryMade:
    return events.SummaryMade(
        ts=material.now,
        document="brief",
        how=material.how,
        words=material.words,
        turns=len(material.turns),
        usd=material.usd,
        tokens=material.tokens,
    )


def _list_loop_ids(
    happened: Iterable[events.LoopAdded | events.LoopResolved], kind: type
) -> tuple[str, ...]:
    return tuple(event.id for event in happened if isinstance(event, kind))


def _resolve_foreign(
    projection: Projection, closings: Iterable[ResolvedLine], now: datetime
) -> Iterator[events.LoopResolved]:
    """Yield events for loops that other tools resolved, unless they were reopened since."""
    for closing in closings:
        loop = projection.loops.get(closing.id)
        when = min(closing.when or now, now)
        if loop is None or not loop.is_open:
            continue
        began = loop.opened_at
        # Other tools write whole seconds, so a loop may appear to have been resolved just before it
        # was opened.
        if when > began or when == began.replace(microsecond=0):
            later = max(when, began + timedelta(microseconds=1))
            yield events.LoopResolved(ts=later, id=closing.id, reason=closing.reason)
