"""The morning page, gathered from the store: what was done, why each stopped, what waits."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo

from rekindle.documents import brief as briefs
from rekindle.documents import event as events
from rekindle.documents import relay as relays
from rekindle.documents.brief import Brief, Label
from rekindle.documents.event import AnyEvent, Unrecognised
from rekindle.documents.identity import one_line
from rekindle.documents.morning import Asks, Entry, Moment, Page
from rekindle.documents.relay import Field
from rekindle.documents.row import Row
from rekindle.documents.summary import carried
from rekindle.errors import DocumentError, RekindleError
from rekindle.flows.read_rows import ReadRows
from rekindle.policy import loops, mornings, questions
from rekindle.policy.fold import Projection
from rekindle.policy.row import broken_row
from rekindle.policy.settings import HEADLINE_CHARACTERS, Runtime
from rekindle.policy.timeline import make_timeline
from rekindle.stores.files import FileStore
from rekindle.thresholds.screens import MORNING_LOOPS, MORNING_MOMENTS

_DAY = timedelta(days=1)
_AT_THEIR_TIME = (events.LoopAdded, events.LoopResolved, events.StateAdopted)
"""What may be written down long after it happened."""


class Spend:
    """What was spent, in dollars and tokens; of some nobody knows the price."""

    def __init__(self) -> None:
        self.usd, self.tokens = 0.0, 0

    def add(self, usd: float | None, tokens: int | None) -> None:
        self.usd += usd or 0.0
        self.tokens += tokens or 0

    def __str__(self) -> str:
        parts = [f"${self.usd:.2f}"] if self.usd else []
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        return ", ".join(parts)


class GatherMorning:
    def __init__(
        self,
        store: FileStore,
        now: datetime,
        zone: tzinfo,
        runtime: Runtime,
        rows: ReadRows,
    ) -> None:
        self._store, self._now, self._zone, self._runtime = store, now, zone, runtime
        self._rows = rows
        self._whole = Spend()

    def page(self, project: str, agents: Sequence[str]) -> Page:
        entries = tuple(self._entry(agent) for agent in agents)
        here = self._now.astimezone(self._zone)
        return Page(
            project=project,
            written=f"{here:%A, %Y-%m-%d %H:%M}",
            entries=tuple(sorted(entries, key=lambda one: not one.asks)),
            cost=f"{self._whole} since {self._since():%Y-%m-%d %H:%M}" if str(self._whole) else "",
        )

    def _since(self) -> datetime:
        """A day before the last morning: what the page is about."""
        at = self._runtime.brief.at
        last = mornings.moment(self._now.astimezone(self._zone).date(), at, self._zone)
        last = last if last <= self._now else last - _DAY
        return (last - _DAY).astimezone(self._zone)

    def _entry(self, agent: str) -> Entry:
        """Return an agent's entry; one that cannot be read must not hide the others."""
        row = self._rows.row(agent)
        try:
            if self._store.exists(agent):
                return self._known(row)
        except RekindleError as error:
            row = broken_row(agent, row.harness, str(error), error.hint)
        asks = (Asks(row.reason, row.command),) if row.state == "broken" else ()
        return Entry(agent=agent, state=row.state, why=row.reason, asks=asks)

    def _known(self, row: Row) -> Entry:
        agent = row.agent
        known = self._store.read(agent).projection
        brief = self._brief(agent)
        written = known.briefed.ts or (known.documents["brief"].ts if brief else None)
        # Finished work has nothing next, whatever its last relay or brief says.
        following = (brief.content(Label.NEXT) if brief else "") or row.next_action
        following = "" if row.state == "done" else following
        asks, happened = tuple(self._asks(row, known)), self._happened(agent)
        return Entry(
            agent=agent,
            state=row.state,
            label=row.label,
            why=row.reason,
            done=carried((brief.content(Label.CHANGED) or "") if brief else ""),
            next=one_line(following, HEADLINE_CHARACTERS * 2),
            asks=asks,
            night=self._night(happened),
            loops=_loops(row),
            open_loops=self._open_loops(known),
            refused=_refused(row),
            cost=self._cost(happened, known),
            brief=f"written {written.astimezone(self._zone):%Y-%m-%d %H:%M}"
            if brief and written
            else f"none yet{f': rekindle brief {agent}' if known.lives or known.attempts else ''}",
        )

    def _asks(self, row: Row, known: Projection) -> Iterator[Asks]:
        """Yield what only a person can do something about."""
        agent = row.agent
        # An agent that the operator stopped does not wait for the operator.
        is_over = known.run.is_over and row.state != "done" and known.run.desired != "stopped"
        if row.command and (row.state in {"needs you", "broken"} or is_over):
            yield Asks(row.reason, row.command, row.others)
        for asked in questions.open_questions(known, self._now):
            command = questions.command_line(asked)
            if command != row.command:
                yield Asks(asked.text, command, questions.other_answers(asked))
        for question in self._questions(agent):
            yield Asks(question)
        for one in loops.open_now(known.loops, self._now, self._runtime.loops):
            reason = known.briefed.claimed.get(one.id)
            command = f"rekindle resolve {one.id} REASON -a {agent}"
            if reason:
                yield Asks(f"{one.id}: is it done? {reason}", command)
            elif one.stale:
                yield Asks(f"{one.id}: open since {one.added}: {one.text}", command)

    def _open_loops(self, known: Projection) -> tuple[str, ...]:
        """Return the loops that the page asks nothing about, the oldest first."""
        found = [
            f"{one.id}: {one.text}"
            for one in loops.open_now(known.loops, self._now, self._runtime.loops)
            if not one.stale and not known.briefed.claimed.get(one.id)
        ]
        more = len(found) - MORNING_LOOPS
        shown = [one_line(text, HEADLINE_CHARACTERS * 2) for text in found[:MORNING_LOOPS]]
        return (
            (*shown, f"and {more} more: rekindle loops -a {known.agent}")
            if more > 0
            else tuple(shown)
        )

    def _happened(self, agent: str) -> list[AnyEvent | Unrecognised]:
        """Return the events that the page is about, oldest first."""
        since = self._since()
        found = []
        for event in self._store.newest_events(agent):
            if event.ts < since - _DAY and not isinstance(event, _AT_THEIR_TIME):
                break
            if event.ts >= since:
                found.append(event)
        return found[::-1]

    def _night(self, happened: Sequence[AnyEvent | Unrecognised]) -> tuple[Moment, ...]:
        today = self._now.astimezone(self._zone).date()
        moments = []
        for one in make_timeline(happened, self._now, self._zone):
            at = one.at.astimezone(self._zone)
            day = "" if at.date() == today else f"{at:%a} "
            moments.append(Moment(f"{day}{at:%H:%M}", one.text, one.kind))
        hidden = len(moments) - MORNING_MOMENTS
        earlier = (Moment("earlier", f"{hidden} more: `rekindle logs`"),) if hidden > 0 else ()
        return (*earlier, *moments[-MORNING_MOMENTS:])

    def _cost(self, happened: Sequence[AnyEvent | Unrecognised], known: Projection) -> str:
        since, spend = self._since(), Spend()
        for event in happened:
            if isinstance(event, events.LaunchEnded | events.SummaryMade | events.ReviewMade):
                spend.add(event.usd, event.tokens)
                self._whole.add(event.usd, event.tokens)
        told = f"{spend} since {since:%Y-%m-%d %H:%M}" if str(spend) else ""
        whole = known.run.spent_of_run()
        run = Spend()
        run.add(whole.usd, whole.tokens)
        return "; ".join(filter(None, (told, f"{run} in this run" if str(run) else "")))

    def _brief(self, agent: str) -> Brief | None:
        data = self._store.document(agent, "brief")
        try:
            return briefs.parse(data) if data else None
        except DocumentError:
            return None

    def _questions(self, agent: str) -> tuple[str, ...]:
        """The open questions of its relay."""
        data = self._store.document(agent, "relay")
        try:
            found = relays.parse(data).content(Field.OPEN_QUESTIONS) if data else None
        except DocumentError:
            return ()
        said = carried(found or "")
        return tuple(one for one in said if one.strip(" .").casefold() not in {"none", "n/a", "-"})


def _refused(row: Row) -> str:
    calls = f"{row.refused} tool call{'' if row.refused == 1 else 's'}"
    return f"{calls} of this run, no permission" if row.refused else ""


def _loops(row: Row) -> str:
    stale = f", {row.stale_loops} stale" if row.stale_loops else ""
    return f"{row.open_loops} open{stale}" if row.open_loops else ""
