"""Read the rows of agents that are kept in files; one that did not change is not made again."""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo

import msgspec

from rekindle.documents.manifest import Agent
from rekindle.documents.row import Row
from rekindle.errors import RekindleError
from rekindle.policy.row import Around, broken_row, make_row, new_row
from rekindle.policy.settings import Runtime
from rekindle.stores.files import FileStore, ownership
from rekindle.stores.files.ownership import Owner
from rekindle.stores.files.view import View


class Reading(msgspec.Struct, frozen=True):
    """The row of an agent, and the files that it was made from."""

    row: Row
    view: View | None = None
    """None if the agent was never started, or if its files cannot be read."""
    owner: Owner | None = None
    is_supervised: bool = False
    deadline: datetime | None = None
    """When a question of the agent closes, which is written nowhere."""


class ReadRows:
    """The rows of one project's agents."""

    def __init__(
        self,
        store: FileStore,
        agents: Mapping[str, Agent],
        runtime: Runtime,
        clock: Callable[[], datetime],
        *,
        zone: tzinfo | None = None,
        is_alive: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`is_alive` tells whether a process runs, of a session that has not ended."""
        self._store, self._agents, self._runtime = store, agents, runtime
        self._clock, self._zone, self._is_alive = clock, zone, is_alive
        self._made: dict[str, tuple[object, Reading]] = {}

    def row(self, agent: str) -> Row:
        """Return the row of an agent."""
        return self.read(agent).row

    def read(self, agent: str) -> Reading:
        """Return the row of an agent with its files; `broken` if they cannot be read."""
        harness = self._agents[agent].harness if agent in self._agents else ""
        if not self._store.exists(agent):
            return Reading(new_row(agent, harness))
        try:
            is_supervised, now = self._store.is_supervised(agent), self._clock()
            # Loops grow stale with the day, and a session that a person began may be killed; all
            # else is written when it changes.
            key = (self._store.stamp(agent), is_supervised, now.date())
            made_for, before = self._made.get(agent, (None, None))
            is_by_hand = before and before.row.state == "running" and not is_supervised
            is_late = before and before.deadline and now >= before.deadline
            if before and made_for == key and not is_by_hand and not is_late:
                return before
            made = self._make(agent, harness, now, is_supervised=is_supervised)
        except RekindleError as error:
            return Reading(broken_row(agent, harness, str(error), error.hint))
        self._made[agent] = key, made
        return made

    def _make(self, agent: str, harness: str, now: datetime, *, is_supervised: bool) -> Reading:
        entry = self._agents.get(agent)
        around = Around(
            now=now,
            zone=self._zone,
            is_supervised=is_supervised,
            is_alive=self._is_alive,
            budget=entry.budget if entry else None,
            loops=self._runtime.loops,
        )
        view = self._store.read(agent)
        owner = ownership.read(self._store.folder(agent))
        row, deadline = make_row(view.projection, around, harness), None
        if view.projection.questions:
            from rekindle.policy import questions  # noqa: PLC0415 - few agents have any

            deadline = questions.next_deadline(view.projection, now)
        return Reading(row, view, owner, is_supervised, deadline)
