"""Read agents' status rows, and reuse rows that have not changed."""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo

import msgspec

from rekindle.documents.manifest import AgentEntry
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import RekindleError
from rekindle.policy.operator.build_row import RowInputs, build_broken_row, build_new_row, build_row
from rekindle.policy.projection.sessions import find_newest_launch
from rekindle.policy.settings.runtime_settings import RuntimeSettings
from rekindle.stores.files import FileStore, ownership
from rekindle.stores.files.ownership import AgentOwner
from rekindle.stores.log.view import AgentView


class RowReading(msgspec.Struct, frozen=True):
    """An agent's status row, and the data behind it."""

    row: AgentRow
    view: AgentView | None = None
    """View of the agent's log; None if it was never started or cannot be read."""
    owner: AgentOwner | None = None
    is_supervised: bool = False
    deadline: datetime | None = None
    """Time at which the agent's next question times out, which also changes the row."""


class RowReader:
    """Reads the status rows for one project's agents."""

    def __init__(
        self,
        store: FileStore,
        agents: Mapping[str, AgentEntry],
        runtime: RuntimeSettings,
        clock: Callable[[], datetime],
        *,
        zone: tzinfo | None = None,
        is_alive: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Create a reader. `is_alive` returns whether a session's process is running."""
        self._store, self._agents, self._runtime = store, agents, runtime
        self._clock, self._zone, self._is_alive = clock, zone, is_alive
        self._made: dict[str, tuple[object, RowReading]] = {}

    def row(self, agent: str) -> AgentRow:
        return self.read(agent).row

    def read(self, agent: str) -> RowReading:
        """Return the row and its data, or a `broken` row if the files cannot be read."""
        harness = self._agents[agent].harness if agent in self._agents else ""
        if not self._store.exists(agent):
            return RowReading(build_new_row(agent, harness))
        try:
            is_supervised, now = self._store.is_supervised(agent), self._clock()
            # The files do not show that a loop has become stale, or that a process that the user
            # started was killed.
            key = (self._store.stamp(agent), is_supervised, now.date())
            made_for, before = self._made.get(agent, (None, None))
            is_by_hand = before and before.row.state == "running" and not is_supervised
            is_late = before and before.deadline and now >= before.deadline
            if before and made_for == key and not is_by_hand and not is_late:
                return before
            reading = self._make_reading(agent, harness, now, is_supervised=is_supervised)
        except RekindleError as error:
            return RowReading(build_broken_row(agent, harness, str(error), error.hint))
        self._made[agent] = key, reading
        return reading

    def _make_reading(
        self, agent: str, harness: str, now: datetime, *, is_supervised: bool
    ) -> RowReading:
        entry = self._agents.get(agent)
        inputs = RowInputs(
            now=now,
            zone=self._zone,
            is_supervised=is_supervised,
            is_alive=self._is_alive,
            budget=entry.budget if entry else None,
            loops=self._runtime.loops,
        )
        view = self._store.read(agent)
        owner = ownership.read_owner(self._store.folder(agent))
        newest = find_newest_launch(view.projection.attempts)
        if entry and newest and (entry.harnesses or entry.accounts):
            harness = str(newest.route)
        row, deadline = build_row(view.projection, inputs, harness), None
        if view.projection.questions:
            from rekindle.policy.operator import questions  # noqa: PLC0415 - few agents have questions

            deadline = questions.find_next_deadline(view.projection, now)
        return RowReading(row, view, owner, is_supervised, deadline)
