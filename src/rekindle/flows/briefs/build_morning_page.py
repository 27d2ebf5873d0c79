"""Build the morning page: what each agent did, why it stopped, and what it needs."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo

from rekindle.documents import events
from rekindle.documents.brief import BriefLabel
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.relay import RelayField
from rekindle.documents.screens.agent_row import STATES, AgentRow, render_spend
from rekindle.documents.screens.morning_page import (
    EARLIER,
    MorningEntry,
    MorningPage,
    NightLine,
    PersonRequest,
)
from rekindle.documents.summaries.summary import list_carried_items
from rekindle.errors import RekindleError
from rekindle.flows.operator.read_rows import RowReader
from rekindle.flows.read_documents import parse_brief, read_relay
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.night.timeline import make_timeline
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.build_row import build_broken_row
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import HEADLINE_CHARACTERS, RuntimeSettings
from rekindle.stores.files import FileStore
from rekindle.thresholds.screens import MORNING_LOOPS, MORNING_MOMENTS

_DAY = timedelta(days=1)
_BACKDATED_EVENTS = (events.LoopAdded, events.LoopResolved, events.StateAdopted)
"""Events that can be recorded long after they happened."""


class MorningPageBuilder:
    def __init__(
        self,
        store: FileStore,
        now: datetime,
        zone: tzinfo,
        runtime: RuntimeSettings,
        rows: RowReader,
    ) -> None:
        self._store, self._now, self._zone, self._runtime = store, now, zone, runtime
        self._rows = rows

    def page(self, project: str, agents: Sequence[str]) -> MorningPage:
        rows = [self._rows.row(agent) for agent in agents]
        entries = tuple(map(self._build_entry, rows))
        spent = render_spend(row.spend for row in rows)
        local_time = self._now.astimezone(self._zone)
        return MorningPage(
            project=project,
            written=f"{local_time:%A, %Y-%m-%d %H:%M}",
            entries=tuple(sorted(entries, key=lambda entry: not entry.asks)),
            cost=f"{spent} in these runs" if spent else "",
        )

    def _find_start(self) -> datetime:
        """Return the start of the reported period, which is one day before the last morning."""
        at = self._runtime.brief.at
        last = brief_schedule.resolve_time_of_day(
            self._now.astimezone(self._zone).date(), at, self._zone
        )
        last = last if last <= self._now else last - _DAY
        return (last - _DAY).astimezone(self._zone)

    def _build_entry(self, row: AgentRow) -> MorningEntry:
        """Build an agent's entry. If the agent cannot be read, the entry shows the error."""
        agent = row.agent
        try:
            if self._store.exists(agent):
                return self._build_known_entry(row)
        except RekindleError as error:
            row = build_broken_row(agent, row.harness, str(error), error.hint)
        asks = (PersonRequest(row.reason, row.command),) if row.state == "broken" else ()
        return MorningEntry(agent=agent, state=row.state, why=row.reason, asks=asks)

    def _build_known_entry(self, row: AgentRow) -> MorningEntry:
        agent = row.agent
        state = self._store.read(agent).projection
        brief = parse_brief(self._store.document(agent, "brief"))
        written = state.briefed.ts or (state.documents["brief"].ts if brief else None)
        # Finished work has no next step, even if the last relay or brief names one.
        following = (brief.content(BriefLabel.NEXT) if brief else "") or row.next_action
        following = "" if row.state == "done" else following
        spent = render_spend([row.spend])
        return MorningEntry(
            agent=agent,
            state=row.state,
            label=row.label,
            why=row.reason,
            done=list_carried_items((brief.content(BriefLabel.CHANGED) or "") if brief else ""),
            next=to_one_line(following, HEADLINE_CHARACTERS * 2),
            asks=tuple(self._list_requests(row, state)),
            night=self._render_night(agent, self._read_recent_events(agent)),
            loops=_render_loops(row),
            open_loops=self._open_loops(state),
            refused=_render_refused(row),
            cost=f"{spent} in this run" if spent else "",
            brief=f"written {written.astimezone(self._zone):%Y-%m-%d %H:%M}"
            if brief and written
            else f"none yet{f': rekindle brief {agent}' if state.lives or state.attempts else ''}",
        )

    def _list_requests(self, row: AgentRow, projection: Projection) -> Iterator[PersonRequest]:
        """Yield the requests that need a person's attention."""
        agent = row.agent
        # An agent that the operator stopped does not need the operator.
        is_over = (
            projection.run.is_over and row.state != "done" and projection.run.desired != "stopped"
        )
        if row.command and (STATES[row.state].needs_person or is_over):
            yield PersonRequest(row.reason, row.command, row.others)
        for open_question in questions.list_open_questions(projection, self._now):
            command = answers.render_answer_command(open_question)
            if command != row.command:
                yield PersonRequest(
                    open_question.text, command, answers.list_other_answers(open_question)
                )
        for question in self._list_questions(agent):
            yield PersonRequest(question)
        for loop in open_loops.list_open_loops(projection.loops, self._now, self._runtime.loops):
            reason = projection.briefed.claimed.get(loop.id)
            command = f"rekindle resolve {loop.id} REASON -a {agent}"
            if reason:
                yield PersonRequest(f"{loop.id}: is it done? {reason}", command)
            elif loop.stale:
                yield PersonRequest(f"{loop.id}: open since {loop.added}: {loop.text}", command)

    def _open_loops(self, projection: Projection) -> tuple[str, ...]:
        """Return the open loops that do not need an answer from the operator, oldest first."""
        loops = [
            f"{loop.id}: {loop.text}"
            for loop in open_loops.list_open_loops(projection.loops, self._now, self._runtime.loops)
            if not loop.stale and not projection.briefed.claimed.get(loop.id)
        ]
        more = len(loops) - MORNING_LOOPS
        shown = [to_one_line(text, HEADLINE_CHARACTERS * 2) for text in loops[:MORNING_LOOPS]]
        return (
            (*shown, f"and {more} more: rekindle loops -a {projection.agent}")
            if more > 0
            else tuple(shown)
        )

    def _read_recent_events(self, agent: str) -> list[AnyEvent | UnknownEvent]:
        """Return the events in the reported period, oldest first."""
        since = self._find_start()
        recent = []
        for event in self._store.newest_events(agent):
            if event.ts < since - _DAY and not isinstance(event, _BACKDATED_EVENTS):
                break
            if event.ts >= since:
                recent.append(event)
        return recent[::-1]

    def _render_night(
        self, agent: str, happened: Sequence[AnyEvent | UnknownEvent]
    ) -> tuple[NightLine, ...]:
        today = self._now.astimezone(self._zone).date()
        moments = []
        for moment in make_timeline(happened, self._now, self._zone):
            if moment.kind == "relay":
                continue  # the page shows the next action instead
            at = moment.at.astimezone(self._zone)
            day = "" if at.date() == today else f"{at:%a} "
            moments.append(NightLine(f"{day}{at:%H:%M}", moment.text, moment.kind))
        hidden = len(moments) - MORNING_MOMENTS
        more = f"{hidden} more: rekindle logs {agent}"
        earlier = (NightLine(EARLIER, more),) if hidden > 0 else ()
        return (*earlier, *moments[-MORNING_MOMENTS:])

    def _list_questions(self, agent: str) -> tuple[str, ...]:
        """Return the open questions in the agent's relay."""
        relay = read_relay(self._store, agent)
        items = list_carried_items((relay and relay.content(RelayField.OPEN_QUESTIONS)) or "")
        return tuple(
            item for item in items if item.strip(" .").casefold() not in {"none", "n/a", "-"}
        )


def _render_refused(row: AgentRow) -> str:
    calls = render_count(row.refused, "tool call")
    return f"{calls} in this run, no permission" if row.refused else ""


def _render_loops(row: AgentRow) -> str:
    stale = f", {row.stale_loops} stale" if row.stale_loops else ""
    return f"{row.open_loops} open{stale}" if row.open_loops else ""
