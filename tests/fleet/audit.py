"""Reconstruct the life of an agent from its workflow's history alone.

This trusts no report of a host and no answer of the workflow: only the engine's records, in their
order, count.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from rekindle.fleet.agent.host_orders import HostLoss, HostOrder, LeaseEnd
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.fleet.agent_registry import (
    CommitRequest,
)

_IDENTITY = re.compile(r"rekindle (\S+) (\d+)@(\S+)")


@dataclass(frozen=True)
class Who:
    """A worker, as the engine knows it."""

    build: str
    pid: int
    host: str


@dataclass(frozen=True)
class Accepted:
    """A commit that the workflow accepted."""

    at: datetime
    who: Who
    asked: CommitRequest
    leased: int
    """The generation of the last lease before it."""
    is_late: bool
    """The engine had seen the lease's end, and the workflow did not know it yet."""


@dataclass
class Lease:
    """One lease, from the order to begin a cycle until its end."""

    generation: int
    queue: str
    scheduled: datetime
    taken_at: datetime | None = None
    taken_by: Who | None = None
    openings: int = 0
    lease: str = ""
    """Its random id, once a host has opened it."""
    ended: datetime | None = None
    how: str = ""

    def end(self, at: datetime, how: str) -> None:
        if self.ended is None:
            self.ended, self.how = at, how

    def is_held_at(self, moment: datetime, host: str) -> bool:
        """Return whether a cycle ran at that moment, on that host."""
        if self.taken_at is None or self.taken_by is None or self.taken_by.host != host:
            return False
        return self.taken_at <= moment and (self.ended is None or self.ended > moment)


@dataclass
class Told:
    """The whole life of an agent according to its history."""

    agent: str
    leases: list[Lease] = field(default_factory=list)
    commits: list[Accepted] = field(default_factory=list)
    overlaps: list[tuple[datetime, str]] = field(default_factory=list)
    """Leases that should not have been given or taken."""
    history_events: int = 0
    history_bytes: int = 0

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the recorded facts; a commit that was requested twice counts once."""
        once = {one.asked.id: one.asked for one in self.commits}
        return [msgspec.json.decode(line) for one in once.values() for line in one.lines]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["kind"] == kind]

    @property
    def zombies(self) -> list[Accepted]:
        """Return the commits that were accepted from a host without the lease."""
        by = {one.generation: one.taken_by for one in self.leases}
        return [
            one
            for one in self.commits
            if one.asked.generation != one.leased or one.who != by.get(one.asked.generation)
        ]

    @property
    def moves(self) -> int:
        hosts = [one.taken_by.host for one in self.leases if one.taken_by]
        return sum(before != after for before, after in pairwise(hosts))

    def held_at(self, moment: datetime, host: str) -> Lease | None:
        return next((one for one in self.leases if one.is_held_at(moment, host)), None)

    def next_after(self, lease: Lease) -> Lease | None:
        """Return the next lease that a host took."""
        later = self.leases[self.leases.index(lease) + 1 :]
        return next((one for one in later if one.taken_at is not None), None)


async def told(client: Client, agent: str) -> Told:
    name = f"{client.namespace}/{agent}"
    described = await client.get_workflow_handle(name).describe()
    found, run = Told(agent), described.raw_info.first_run_id
    while run:
        by_schedule: dict[int, Lease] = {}
        history = await client.get_workflow_handle(name, run_id=run).fetch_history()
        found.history_events += len(history.events)
        for event in history.events:
            found.history_bytes += event.ByteSize()
            _hear(found, by_schedule, event)
        last = history.events[-1].workflow_execution_continued_as_new_event_attributes
        run = last.new_execution_run_id
    return found


def _hear(found: Told, by_schedule: dict[int, Lease], event: Any) -> None:
    at = event.event_time.ToDatetime(tzinfo=UTC)
    kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
    last = found.leases[-1] if found.leases else None
    match kind:
        case "ACTIVITY_TASK_SCHEDULED":
            said = event.activity_task_scheduled_event_attributes
            if said.activity_type.name != "begin_cycle":
                return
            order: HostOrder = _decoded(said.input, HostOrder)
            if last is not None and (last.ended is None or last.generation >= order.generation):
                found.overlaps.append((at, f"{order.generation} was handed out beside {last}"))
            made = Lease(order.generation, said.task_queue.name, at)
            found.leases.append(made)
            by_schedule[event.event_id] = made
        case "WORKFLOW_EXECUTION_UPDATE_ACCEPTED":
            request = event.workflow_execution_update_accepted_event_attributes.accepted_request
            if request.input.name in {"take_up", "commit", "end_lease"}:
                assert last is not None, f"{request.input.name} before there was a lease"
                _accept(found, last, request, at)
        case "WORKFLOW_EXECUTION_SIGNALED" if last is not None:
            _hear_loss(last, event.workflow_execution_signaled_event_attributes, at)
        case "ACTIVITY_TASK_FAILED" | "ACTIVITY_TASK_TIMED_OUT" | "ACTIVITY_TASK_CANCELED":
            said = getattr(event, f"{kind.lower()}_event_attributes")
            if lease := by_schedule.get(said.scheduled_event_id):
                lease.end(at, kind.removeprefix("ACTIVITY_TASK_"))


def _hear_loss(last: Lease, said: Any, at: datetime) -> None:
    if said.signal_name == "host_lost":
        loss: HostLoss = _decoded(said.input, HostLoss)
        if last.lease == loss.lease:
            last.end(at, "LOST")


def _accept(found: Told, last: Lease, request: Any, at: datetime) -> None:
    who = _who(request.meta.identity)
    if request.input.name == "end_lease":
        end: LeaseEnd = _decoded(request.input.args, LeaseEnd)
        assert end.lease == last.lease, f"{who} ended {end} of {last}"
        last.end(at, end.kind or "COMPLETED")
        return
    if request.input.name == "commit":
        asked: CommitRequest = _decoded(request.input.args, CommitRequest)
        found.commits.append(Accepted(at, who, asked, last.generation, last.ended is not None))
        return
    opening: LeaseRequest = _decoded(request.input.args, LeaseRequest)
    is_other = last.taken_by not in {None, who}
    if opening.generation != last.generation or opening.host != who.host or is_other:
        found.overlaps.append((at, f"{who} took up {opening.generation} of {last}"))
    last.taken_at, last.taken_by = last.taken_at or at, who
    last.lease, last.generation = opening.lease, max(last.generation, opening.seen + 1)
    last.openings += 1


def _who(identity: str) -> Who:
    said = _IDENTITY.fullmatch(identity)
    assert said, f"whose is {identity!r}?"
    return Who(said[1], int(said[2]), said[3])


def _decoded(payloads: Any, kind: type) -> Any:
    return make_data_converter(()).payload_converter.from_payload(payloads.payloads[0], kind)
