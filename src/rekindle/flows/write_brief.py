"""A brief writes itself: what was said and done since the last one, and what that changes.

Only what is new in the kept transcripts is read. A summarizer is asked about it; its answer is held
against the turns; and what follows goes into the log together with the brief, in one write: the
loops, the numbers, how far the transcripts were told, what asking has cost. Whoever is killed
before that has changed nothing, and whoever comes after it goes on from there.

Where no model can be had, or its answer cannot be used, the loops stay as they are, the brief is
put together without one and says so, and what was to be read is read again the next time: as long
as there is no answer, and a few times where there are some that cannot be used.

Nobody is asked before the agent's log is there to write to. What was paid is in it, whatever became
of the brief, and one of which nothing came is begun again after a pause that grows.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Literal

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import day as days
from rekindle.documents import event as events
from rekindle.documents import relay as relays
from rekindle.documents.brief import Brief, Label
from rekindle.documents.day import Day
from rekindle.documents.event import AnyEvent
from rekindle.documents.question import Answer
from rekindle.documents.state import moment
from rekindle.documents.summary import carried
from rekindle.documents.transcript import Turn
from rekindle.errors import (
    BusyError,
    DocumentError,
    NotFoundError,
    OverBudgetError,
    RekindleError,
)
from rekindle.flows.news import News, Ours
from rekindle.flows.summarize import answered
from rekindle.policy import brief as policy
from rekindle.policy import day as asking
from rekindle.policy import loops, mornings
from rekindle.policy.adoption import Closing
from rekindle.policy.attribution import Heard
from rekindle.policy.backoff import double
from rekindle.policy.claims import Work
from rekindle.policy.fold import Projection, fold
from rekindle.policy.mornings import Due
from rekindle.policy.run import is_done
from rekindle.policy.settings import (
    BRIEF_PIECES,
    BRIEF_RETRY_MOST_SECONDS,
    BRIEF_RETRY_SECONDS,
    BRIEF_TURN_CHARACTERS,
    BRIEF_UNUSABLE,
    STOP_SECONDS,
    Runtime,
)
from rekindle.policy.settle import Settled, Shown, settle
from rekindle.policy.summarize import Request
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcripts import TranscriptArchive
from rekindle.stores.files.writer import Writer
from rekindle.summarizers.mechanical import Gist, Known, summary_of
from rekindle.system import disk


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What writing a brief needs of whoever put all this together."""

    ask: Callable[[Request], Answer] | None
    """Who is asked; None: nobody."""
    words: str = ""
    """What its model is told beside the request."""
    archive: Callable[[], None]
    """Keep what the sessions have told since."""
    work: Callable[[datetime | None], Work]
    """What git knows of the work since a moment."""
    clock: Callable[[], datetime]
    zone: tzinfo
    runtime: Runtime
    task: str = ""
    """What a supervisor asks every session for."""
    asks: bool = True
    """It does so; else a person sits before it."""
    nonce: Callable[[], str] = lambda: secrets.token_hex(16)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    is_new: bool
    """Else it stands as it was."""
    how: str = ""
    """headless, mechanical; empty: there was nothing to look at."""
    words: str = ""
    """Why no model has made it."""
    turns: int = 0
    left_out: int = 0
    read_bytes: int = 0
    """How much of the kept transcripts was read for it."""
    opened: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """What another tool has resolved, and nobody knows."""
    usd: float = 0.0
    tokens: int = 0


class Tries(msgspec.Struct, frozen=True):
    """How often a brief was begun of which nothing has come."""

    seq: int = 0
    """Of the brief before it."""
    tries: int = 0
    at: datetime | None = None

    def is_resting(self, now: datetime) -> bool:
        if self.at is None:
            return False
        pause = double(BRIEF_RETRY_SECONDS, self.tries, BRIEF_RETRY_MOST_SECONDS)
        return abs((now - self.at).total_seconds()) < pause


class _Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What is new, and what came of asking about it."""

    seen: Projection
    """What was known then."""
    now: datetime
    due: Due | None
    news: News
    gist: Gist
    turns: tuple[Turn, ...]
    work: Work = Work()
    day: Day = Day()
    asked: bool = False
    words: str = ""
    is_unusable: bool = False
    """There was an answer, and it could not be used."""
    left_out: int = 0
    usd: float = 0.0
    tokens: int = 0

    @property
    def how(self) -> Literal["headless", "mechanical", ""]:
        if not self.turns:
            return ""
        return "headless" if self.asked and not self.words else "mechanical"


class WriteBrief:
    def __init__(self, store: FileStore, agent: str, around: Around) -> None:
        self._store, self._agent, self._around = store, agent, around

    def due(self) -> Due | None:
        """The brief that is to be written now, by the clock or because a session ended."""
        known, now = self._store.read(self._agent).projection, self._around.clock()
        if self._tries(known.briefed.seq).is_resting(now):
            return None
        return mornings.due(
            now,
            self._around.zone,
            self._around.runtime.brief,
            known.briefed,
            lives=known.lives,
            attempts=known.attempts,
            last_active=known.last_active,
        )

    def write(self, due: Due | None = None) -> Written:
        """Write a brief; without `due` because somebody asked for it.

        Raises:
            NotFoundError: Somebody did, and nothing is known of the agent.
        """
        with self._alone():
            with suppress(BusyError):  # somebody keeps them just now: what is kept by now is told
                self._around.archive()
            looked = self._look(due)
            if due is None:
                self._require_something(looked)
            if looked.turns or due:
                self._begin()
            if self._around.ask and looked.turns:
                looked = self._asked(self._around.ask, looked)
            try:
                with self._store.writer(self._agent, wait=STOP_SECONDS) as writer:
                    writer.fold()
                    return self._commit(writer, looked)
            except RekindleError:
                self._keep_spent(looked)
                raise

    def _begin(self) -> None:
        """See that there will be somewhere to write to, and remember that it was tried.

        Raises:
            RekindleError: There will not: nobody is asked.
        """
        with self._store.writer(self._agent, wait=STOP_SECONDS) as writer:
            writer.fold()
            seq = writer.projection.briefed.seq
        before = self._tries(seq)
        now = Tries(seq, before.tries + 1, self._around.clock())
        path = self._store.folder(self._agent).brief_tried
        disk.replace(path, msgspec.json.encode(now))

    def _tries(self, seq: int) -> "Tries":
        data = disk.read(self._store.folder(self._agent).brief_tried)
        with suppress(msgspec.MsgspecError):
            found = msgspec.json.decode(data or b"", type=Tries)
            return found if found.seq == seq else Tries(seq)
        return Tries(seq)

    def _keep_spent(self, looked: _Looked) -> None:
        """What was paid is told, although nothing came of it."""
        if not looked.usd and not looked.tokens:
            return
        with (
            suppress(RekindleError),
            self._store.writer(self._agent, wait=STOP_SECONDS) as writer,
        ):
            if writer.projection.briefed.ts != looked.now:
                writer.append(_spent(looked))

    def _require_something(self, looked: _Looked) -> None:
        """An agent of which nothing is known has no brief: every session would be told of it."""
        seen = looked.seen
        known = seen.documents or seen.loops or seen.numbers or seen.run.refused_of_run()
        if not (looked.turns or looked.news.told or known):
            raise NotFoundError(
                f"nothing was said or done in a session of {self._agent} yet",
                hint=f"`rekindle run {self._agent}` has them, and sessions of yours with hooks",
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        folder = self._store.folder(self._agent)
        self._store.create(self._agent)
        with disk.locked(folder.briefing, 0.0) as lock:
            if lock is None:
                raise BusyError(self._agent, 0.0)
            yield

    def _room(self) -> int:
        """How many characters of turns could ever be asked about."""
        cap = self._around.runtime.relay.summarizer_max_input_tokens
        return cap * BRIEF_PIECES * BRIEF_TURN_CHARACTERS

    def _look(self, due: Due | None) -> _Looked:
        # What comes after this moment is told by the next one.
        now = self._around.clock()
        seen = self._store.read(self._agent).projection
        archive = TranscriptArchive(self._store.folder(self._agent).transcripts)
        task = self._store.redaction.text(self._around.task)
        ours = Ours(_supervised(seen) if self._around.asks else frozenset(), task)
        news, gist = News(archive, seen.briefed, now, self._room(), ours), Gist()
        turns = tuple(gist.of(news.turns))
        began = next((at for turn in turns if (at := moment(turn.at))), None)
        return _Looked(
            seen=seen,
            now=now,
            due=due,
            news=news,
            gist=gist,
            turns=turns,
            work=self._around.work(began) if turns else Work(),
            left_out=news.left_out,
        )

    def _asked(self, ask: Callable[[Request], Answer], looked: _Looked) -> _Looked:
        """Ask about each piece, the newest first; where one has no answer, no other would have one.

        What would be more than a brief may cost is left out, and that is said.
        """
        try:
            asked = self._requests(looked)
        except OverBudgetError as error:
            return msgspec.structs.replace(looked, asked=True, words=str(error))
        found: list[Day] = []
        usd, tokens, words, left_out, is_unusable = 0.0, 0, "", asked.left_out, False
        cap, whole = self._around.runtime.relay.summarizer_max_usd, self._around.runtime.brief
        for request in reversed(asked.requests):
            if usd >= whole.max_usd:
                left_out += len(request.turns)
                continue
            # An answer may cost what any may, and no more than the brief has left.
            before = max(0.0, cap - (whole.max_usd - usd))
            held = msgspec.structs.replace(request, spent=before)
            reply = answered(ask, held, partial(days.parse, turns=request.numbers))
            usd, tokens, words = usd + reply.usd, tokens + reply.tokens, reply.words
            if reply.found is None:
                is_unusable = reply.is_unusable
                break
            found.append(reply.found)
        return msgspec.structs.replace(
            looked,
            day=asking.merged(found[::-1]),
            asked=True,
            words=self._store.redaction.text(words),
            is_unusable=is_unusable,
            left_out=looked.left_out + left_out,
            usd=usd,
            tokens=tokens,
        )

    def _requests(self, looked: _Looked) -> asking.Asked:
        limits, seen, now = self._around.runtime, looked.seen, looked.now
        before = asking.Before(
            loops.open_now(seen.loops, now, limits.loops),
            loops.resolved_lately(seen.loops, now, limits.loops),
            {key: said.value for key, said in seen.numbers.items()},
        )
        return asking.requests(
            looked.turns,
            before,
            nonce=self._around.nonce(),
            cap=limits.relay.summarizer_max_input_tokens,
            words=self._around.words,
        )

    def _commit(self, writer: Writer, looked: _Looked) -> Written:
        """What follows from it, held against what is known by now, and the brief: in one write."""
        closings, is_news = writer.put_resolutions_away()
        closed = tuple(_closed(writer.projection, closings, looked.now))
        nobodys = {one.id for one in closings if one.id not in writer.projection.loops}
        known = fold(writer.projection, closed)
        heard = Heard(looked.turns)
        settled = settle(known.loops, looked.day, _shown(looked, heard), looked.now)
        made = self._made(known, settled, looked, heard)
        after = fold(known, [*settled.events, made])
        old = self._store.document(self._agent, "brief")
        document = self._document(known, after, looked, heard, _parsed(old))
        also: list[AnyEvent] = [*closed, *settled.events, made]
        if looked.asked:
            also.append(_spent(looked))
        text = self._store.redaction.text(briefs.render(document))
        is_new = old != text.encode()
        closes = made.closes and known.briefed.closed.morning != made.morning
        if is_new:
            by = "summarizer" if looked.how == "headless" else "machine"
            writer.commit_brief(document, by=by, also=also)
        elif looked.news.told or closed or closes or is_news:
            writer.append(*also)
        writer.project()
        return Written(
            text=text,
            is_new=is_new,
            how=looked.how,
            words="; ".join(_failures(known, looked)),
            turns=len(looked.turns),
            left_out=looked.left_out,
            read_bytes=looked.news.read_bytes,
            opened=_ids(settled.events, events.LoopAdded),
            resolved=_ids((*closed, *settled.events), events.LoopResolved),
            claimed=tuple(made.claimed),
            unknown=tuple(sorted(nobodys)) if is_news else (),
            usd=looked.usd,
            tokens=looked.tokens,
        )

    def _made(
        self, known: Projection, settled: Settled, looked: _Looked, heard: Heard
    ) -> events.BriefMade:
        due, now, limits = looked.due, looked.now, self._around.runtime.brief
        # Where no model could be had, it is told once more the next time; where it was, and its
        # answer could not be used, not for ever.
        unusable = known.briefed.unusable + 1 if looked.is_unusable else 0
        fails = bool(looked.words) and not _is_given_up(known, looked)
        still = {one.id for one in fold(known, settled.events).loops.values() if one.is_open}
        claimed = {**known.briefed.claimed, **settled.claimed}
        last = max((at for turn in looked.turns if (at := moment(turn.at))), default=None)
        return events.BriefMade(
            ts=now,
            morning=due.morning if due else mornings.morning_of(now, limits.at, self._around.zone),
            closes=due is not None and due.closes,
            told={} if fails else looked.news.told,
            turns=len(looked.turns),
            left_out=looked.left_out,
            failed=known.briefed.failed + 1 if fails else 0,
            unusable=unusable if fails else 0,
            claimed={key: reason for key, reason in claimed.items() if key in still},
            numbers=policy.numbers(known.numbers, looked.day.numbers, looked.turns, heard),
            last_active=min(last, now) if last else None,
            resolved=known.seq,
        )

    def _document(
        self,
        known: Projection,
        after: Projection,
        looked: _Looked,
        heard: Heard,
        before: Brief | None,
    ) -> Brief:
        limits, now = self._around.runtime, looked.now
        page = before if known.briefed.morning == after.briefed.morning else None
        is_told = known.briefed.until_morning == after.briefed.morning
        if known.briefed.failed and not is_told:
            page = None  # what was put together without a model is told by one now, or anew
        changed, following = self._told(looked, heard)
        if looked.words and page and not looked.day.changed:
            changed = []  # the page stays as it was, for whoever tells the rest of it
        risk = tuple(one.text for one in heard.items(looked.day.risk))
        if not looked.turns and page:
            risk = carried(page.content(Label.RISK) or "")
        told = policy.Told(
            changed=policy.page(page, changed),
            more=policy.more(page),
            next=""
            if is_done(known.run)  # finished work has nothing next, whatever its relay says
            else following or (before and before.content(Label.NEXT)) or "not known",
            risk=(*_notes(known, looked), *risk),
            open=loops.open_now(after.loops, now, limits.loops),
            claimed=after.briefed.claimed,
            numbers={key: said.value for key, said in after.numbers.items()},
        )
        day = now.astimezone(self._around.zone).date()
        return policy.write(self._agent, day, told, limits.brief.max_tokens)

    def _told(self, looked: _Looked, heard: Heard) -> tuple[list[str], str]:
        """What has changed, and what comes next; without a transcript, as the cycles tell it."""
        if not looked.turns:
            told = looked.seen.briefed.ts
            cycles = [one for one in looked.seen.ended.values() if told is None or one.ts > told]
            did = [f"cycle {one.cycle}: {one.did}" for one in cycles if one.did]
            return did, self._next_action() if cycles else ""
        work = looked.work
        steps = heard.instructions(looked.day.next, Label.NEXT)
        following = steps[0].text if steps else self._next_action()
        if looked.day.changed or looked.how == "headless":
            return policy.claims(looked.day.changed, looked.turns, work, heard), following
        known = Known(commits=work.commits, changed=work.changed, next_action=following)
        plain = summary_of("brief", looked.gist, known).sections
        return [item.text for item in plain[Label.CHANGED]], plain[Label.NEXT][0].text

    def _next_action(self) -> str:
        data = self._store.document(self._agent, "relay")
        try:
            found = relays.parse(data).next_action if data else None
        except DocumentError:
            found = None
        return (found or "").strip().split("\n", 1)[0]


def _supervised(known: Projection) -> frozenset[str]:
    """The sessions that a supervisor has started, as far as they are remembered."""
    launched = {one.session for one in known.attempts.values()}
    return frozenset(launched | {name for name, life in known.lives.items() if life.launch})


def _parsed(data: bytes | None) -> Brief | None:
    try:
        return briefs.parse(data) if data else None
    except DocumentError:
        return None


def _shown(looked: _Looked, heard: Heard) -> Shown:
    texts = {one.id: one.text for one in looked.seen.loops.values() if one.is_open}
    return Shown({turn.number: turn for turn in looked.turns}, heard, texts)


def _spent(looked: _Looked) -> events.SummaryMade:
    return events.SummaryMade(
        ts=looked.now,
        document="brief",
        how=looked.how,
        words=looked.words,
        turns=len(looked.turns),
        usd=looked.usd,
        tokens=looked.tokens,
    )


def _is_given_up(known: Projection, looked: _Looked) -> bool:
    return looked.is_unusable and known.briefed.unusable + 1 >= BRIEF_UNUSABLE


def _failures(known: Projection, looked: _Looked) -> list[str]:
    """Why no model has made it, and what that means for the next one."""
    if not looked.words:
        return []
    given_up = f"for the {BRIEF_UNUSABLE}. time: these turns are not read again"
    return [looked.words, given_up] if _is_given_up(known, looked) else [looked.words]


def _notes(known: Projection, looked: _Looked) -> list[str]:
    words = "; ".join(_failures(known, looked))
    notes = [f"no model has looked at all of this: {words}"] if words else []
    if count := known.run.refused_of_run():
        calls = f"{count} tool call{'' if count == 1 else 's'}"
        notes.append(f"{calls} of this run: refused, no permission")
    if looked.news.unread:
        notes.append(f"{looked.news.unread:,} sessions, long before the first brief, are not told")
    if looked.left_out:
        notes.append(f"{looked.left_out:,} turns, the oldest, were too many to look at")
    return notes


def _ids(happened: Iterable[events.LoopAdded | events.LoopResolved], kind: type) -> tuple[str, ...]:
    return tuple(one.id for one in happened if isinstance(one, kind))


def _closed(
    known: Projection, closings: Iterable[Closing], now: datetime
) -> Iterator[events.LoopResolved]:
    """What other tools have resolved, at their own time: a loop that was reopened since stays."""
    for one in closings:
        loop = known.loops.get(one.id)
        when = min(one.when or now, now)
        if loop is None or not loop.is_open:
            continue
        began = loop.opened_at
        # Tools write whole seconds: what was opened in that very one was opened before.
        if when > began or when == began.replace(microsecond=0):
            later = max(when, began + timedelta(microseconds=1))
            yield events.LoopResolved(ts=later, id=one.id, reason=one.reason)
