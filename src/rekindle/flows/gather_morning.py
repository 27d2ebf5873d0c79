"""The morning page, gathered from the store: what was done, why each stopped, what waits."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo

from rekindle.documents import brief as briefs
from rekindle.documents import event as events
from rekindle.documents import relay as relays
from rekindle.documents.brief import Brief, Label
from rekindle.documents.identity import one_line
from rekindle.documents.morning import Asks, Entry, Page
from rekindle.documents.relay import Field
from rekindle.documents.summary import carried
from rekindle.errors import DocumentError, RekindleError
from rekindle.policy import loops, mornings
from rekindle.policy.fold import Projection
from rekindle.policy.mood import mood
from rekindle.policy.settings import HEADLINE_CHARACTERS, Runtime
from rekindle.stores.files import FileStore

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
        is_alive: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`is_alive` says whether a process is there, of a session that has not ended."""
        self._store, self._now, self._zone, self._runtime = store, now, zone, runtime
        self._is_alive = is_alive
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
        """One that cannot be read must not hide the others."""
        if not self._store.exists(agent):
            return Entry(agent=agent, mood="new", why="nothing was kept of it yet")
        try:
            return self._known(agent)
        except RekindleError as error:
            asks = Asks(str(error), error.hint or "rekindle doctor")
            return Entry(agent=agent, mood="person", why="it cannot be read", asks=(asks,))

    def _known(self, agent: str) -> Entry:
        known = self._store.read(agent).projection
        brief = self._brief(agent)
        standing = known.documents.get("relay")
        is_supervised = self._store.is_supervised(agent)
        how, why = mood(known, self._zone, self._is_alive, is_supervised=is_supervised)
        written = known.briefed.ts or (known.documents["brief"].ts if brief else None)
        following = (brief.content(Label.NEXT) if brief else "") or (
            standing.headline if standing else ""
        )
        return Entry(
            agent=agent,
            mood=how,
            why=why,
            done=carried((brief.content(Label.CHANGED) or "") if brief else ""),
            next=one_line(following, HEADLINE_CHARACTERS * 2),
            asks=tuple(self._asks(agent, known)),
            loops=self._loops(known),
            cost=self._cost(agent, known),
            brief=f"written {written.astimezone(self._zone):%Y-%m-%d %H:%M}"
            if brief and written
            else f"none yet{f': rekindle brief {agent}' if known.lives or known.attempts else ''}",
        )

    def _asks(self, agent: str, known: Projection) -> Iterator[Asks]:
        """What only a person can do something about."""
        run = known.run
        if run.is_safe:
            mend = f"answer {agent} TEXT" if run.safe.why == "waiting" else f"restart {agent}"
            yield Asks(run.safe.words or run.safe.why, f"rekindle {mend}")
        elif run.is_over and run.ended.why not in {"done", "stopped"}:
            yield Asks(run.ended.words or run.ended.why, f"rekindle restart {agent}")
        for question in self._questions(agent):
            yield Asks(question)
        for one in loops.open_now(known.loops, self._now, self._runtime.loops):
            reason = known.briefed.claimed.get(one.id)
            command = f"rekindle resolve {one.id} REASON -a {agent}"
            if reason:
                yield Asks(f"{one.id}: is it done? {reason}", command)
            elif one.stale:
                yield Asks(f"{one.id}: open since {one.added}: {one.text}", command)

    def _loops(self, known: Projection) -> str:
        opened = loops.open_now(known.loops, self._now, self._runtime.loops)
        stale = sum(one.stale for one in opened)
        return f"{len(opened)} open{f', {stale} stale' if stale else ''}" if opened else ""

    def _cost(self, agent: str, known: Projection) -> str:
        since, spend = self._since(), Spend()
        for event in self._store.newest_events(agent):
            if event.ts < since - _DAY and not isinstance(event, _AT_THEIR_TIME):
                break
            if event.ts < since:
                continue
            if isinstance(event, events.LaunchEnded | events.SummaryMade):
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
