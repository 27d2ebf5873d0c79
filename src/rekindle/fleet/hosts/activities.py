"""Activities that a host performs for a fleet's workflows."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from temporalio import activity
from temporalio.exceptions import ApplicationError

from rekindle.documents import manifest
from rekindle.errors import RekindleError
from rekindle.fleet.agent.host_orders import (
    CUT,
    FAILED,
    FENCED,
    FULL,
    REFUSED,
    HostOrder,
    HostResult,
    LeaseEnd,
)
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.hosts import host_cycle
from rekindle.fleet.hosts.cycle_slots import CycleSlots
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import (
    EndedLease,
    EngineAnswer,
    EngineRegister,
    EngineRequest,
    LeaseRefusal,
    ProcessFailure,
)
from rekindle.fleet.hosts.host_presence import HostPresence
from rekindle.fleet.hosts.host_processes import EngineClient, ForkServer, HostProcess
from rekindle.fleet.hosts.host_sessions import HostSession, make_lease_id
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.team_access import explain_refused_team
from rekindle.policy.operator.make_notification import make_notice
from rekindle.policy.operator.notification_kinds import parse_notification
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings.runtime_settings import (
    FLEET_BEAT_SHARE,
    FLEET_CONFIRM_SHARE,
    FLEET_LEASE_DAYS,
    FLEET_LEAVE_SECONDS,
    FLEET_LOOK_SHARE,
    FLEET_RPC_SECONDS,
    FLEET_SLOT_SECONDS,
    FLEET_WORD_SECONDS,
    STOP_SECONDS,
)
from rekindle.wiring.credential_setup import make_host_notifier


class Activities:
    def __init__(
        self,
        engine: EngineClient,
        presence: HostPresence,
        slots: CycleSlots,
        *,
        root: Path,
        host: str,
        say: Callable[[str], None],
        teams: frozenset[str] = frozenset(),
        floor: SandboxFloor | None = None,
        credentials: str = "",
    ) -> None:
        self._engine, self._presence, self.slots = engine, presence, slots
        self._root, self._host, self._say = root, host, say
        self._teams = teams
        """Teams whose agents this host accepts; empty to accept all agents."""
        self._floor, self._credentials = floor, credentials
        self._fork_server = ForkServer()
        self._sessions: dict[str, HostSession] = {}
        """Sessions whose end the engine does not know yet, by workflow."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.drain = asyncio.Event()
        """Set when the host takes no new cycles."""
        self.drain_seconds = 0.0

    def list_running(self) -> list[str]:
        """Return the workflow ids of the agents whose cycles run on this host."""
        return [name for name, session in self._sessions.items() if session.is_running]

    @activity.defn
    async def offer(self, order: HostOrder, shunned: Sequence[str]) -> str:
        """Reserve a slot and return this host's name, unless the host is in `shunned`.

        A host receives this order only if it has a free slot. A host without the fleet's key fails
        to decrypt the order, and so cannot make an offer.
        """
        attempt = activity.info().attempt
        self._require_team(order, timedelta(seconds=min(attempt, FLEET_SLOT_SECONDS)))
        if self._host not in shunned:
            self.slots.promise()
        return self._host

    @activity.defn
    async def begin_cycle(self, order: HostOrder) -> None:
        """Open the lease and start the cycle, which continues after this activity."""
        self._require_team(order)
        if self.drain.is_set():
            raise ApplicationError("the host is draining", type=FULL, non_retryable=True)
        beating = asyncio.create_task(_send_heartbeats())
        begun: asyncio.Future[HostSession] = asyncio.get_running_loop().create_future()
        self._keep(asyncio.create_task(self._hold_lease(order, begun)))
        try:
            session = await asyncio.shield(begun)
            await session.wait_until_open()
        finally:
            beating.cancel()

    @activity.defn
    async def drop_lease(self, order: HostOrder) -> None:
        """End a session whose lease is over, and wait for its end."""
        session = self._sessions.get(order.workflow)
        if session is not None and session.order.generation <= order.generation:
            session.drop()
            await session.done.wait()

    @activity.defn
    async def drain_host(self, seconds: float) -> None:
        """Take no new cycles, and exit when the running ones have ended."""
        self.start_draining(seconds)

    def start_draining(self, seconds: float) -> None:
        self.drain_seconds = seconds
        self._presence.set_draining()
        self.drain.set()

    async def end_sessions(self) -> None:
        """End all sessions gracefully, take no new ones, and wait until the engine knows that."""
        self.drain.set()
        for session in self._sessions.values():
            session.ask_to_end()
        await self.wait_for_sessions(FLEET_LEAVE_SECONDS)

    async def wait_for_sessions(self, seconds: float) -> None:
        """Wait until no session is left, up to this time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    @activity.defn
    async def write_brief(self, order: HostOrder) -> HostResult:
        self._require_team(order)
        return await self._watch_brief(order)

    @activity.defn
    async def hear(self, order: HostOrder) -> None:
        """Send the operator's command to the process that runs the agent."""
        session = self._sessions.get(order.workflow)
        loop, deadline = asyncio.get_running_loop(), time.monotonic() + FLEET_WORD_SECONDS

        def ask_engine(request: EngineRequest) -> EngineAnswer:
            asking = self._engine.ask(order, request, lambda: time.monotonic() > deadline)
            return asyncio.run_coroutine_threadsafe(asking, loop).result()

        register = EngineRegister(order, ask_engine)
        try:
            is_to_end = await asyncio.to_thread(self._catch_up, order, register)
        except RekindleError as error:
            raise ApplicationError(str(error)) from error  # the workflow retries the activity
        if session is not None and is_to_end:
            session.ask_to_end()

    @activity.defn
    async def notify(self, order: HostOrder, what: str, words: str) -> None:
        handle = self._engine.client.get_workflow_handle_for(AgentWorkflow.run, order.workflow)
        registered = await handle.query(AgentWorkflow.kept)
        # Name the agent's host if there is one, or else the host that sends the notification.
        host = registered.host or self._host
        failures = await asyncio.to_thread(
            _send_notification, registered.definition, order, what, words, host
        )
        if failures:
            raise ApplicationError("; ".join(failures))

    def _require_team(self, order: HostOrder, again: timedelta | None = None) -> None:
        """Refuse an agent of another team. With `again`, the engine asks the pool again later."""
        if why := explain_refused_team(self._host, self._teams, order.team):
            self._say(f"{order.agent}: {why}")
            raise ApplicationError(
                why, type=REFUSED, non_retryable=again is None, next_retry_delay=again
            )

    async def _hold_lease(self, order: HostOrder, begun: "asyncio.Future[HostSession]") -> None:
        """Run a cycle under a lease, and report the lease's end until the engine knows it."""
        vouched = session = None
        try:
            async with self.slots.use():
                order = msgspec.structs.replace(order, lease=make_lease_id())
                vouched = await self._presence.vouch(order.workflow, order.lease)
                process = self._fork_server.begin(
                    host_cycle.run_cycle, order, self._find_folder(order)
                )
                session = self._sessions[order.workflow] = HostSession(order, process, vouched)
                begun.set_result(session)
                end = await session.run(self._engine, lambda: self._start_ending(order, process))
        except Exception as error:  # noqa: BLE001 - without a report, the lease would never end
            if not begun.done():
                begun.set_exception(error)
            if vouched is None:
                return
            held = session.order if session else order
            words = f"the host cannot run the cycle: {error}"
            end = LeaseEnd(generation=held.generation, lease=held.lease, kind=FAILED, words=words)
            vouched.ended.set()
        if end.kind == CUT:
            self._engine.count_cut_off()
        if end.words:
            self._say(f"{order.agent}: {end.words}")
        await self._report_end(order, end)
        self._presence.release(vouched)
        if self._sessions.get(order.workflow) is session:
            self._sessions.pop(order.workflow, None)

    async def _report_end(self, order: HostOrder, end: LeaseEnd) -> None:
        """Report a lease's end until the workflow knows it.

        The host vouches for the lease until then. If the host died first, the engine would find the
        lease in its last heartbeat.
        """
        while True:
            answer = await self._engine.ask(order, end, lambda: False)
            if isinstance(answer, EndedLease | LeaseRefusal):
                return
            await asyncio.sleep(FLEET_RPC_SECONDS)

    async def _watch_brief(self, order: HostOrder) -> HostResult:
        """Serve a brief's process until the process exits or the engine gives up this host."""
        order = msgspec.structs.replace(order, lease=order.lease or make_lease_id())
        process = self._fork_server.begin(host_cycle.write_brief, order, self._find_folder(order))
        # Use the agent's own timeout, after which the engine reassigns the agent.
        timeout = activity.info().heartbeat_timeout or timedelta(days=FLEET_LEASE_DAYS)
        patience = timeout.total_seconds() * FLEET_CONFIRM_SHARE
        beating = asyncio.create_task(_send_heartbeats())
        serving = asyncio.create_task(self._serve_requests(process, order, patience))
        leaving = asyncio.create_task(activity.wait_for_worker_shutdown())
        waited: set[asyncio.Task[Any]] = {serving, leaving}
        try:
            while not serving.done():
                if self._presence.is_silent(patience):
                    words = (
                        "the engine cannot be reached, so another host has taken over the agent "
                        "by now"
                    )
                    self._engine.count_cut_off()
                    raise ApplicationError(words, type=CUT, non_retryable=True)
                if leaving in waited and leaving.done():
                    waited = {serving}
                    process.ask_to_end()
                await asyncio.wait(
                    waited,
                    timeout=patience * FLEET_LOOK_SHARE,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            return self._check_result(order, serving.result())
        finally:
            # A host that was frozen is cancelled twice. Without the shield, the second cancellation
            # would leave a process running, with a reader on its file descriptor. A later process's
            # pipe may get the same descriptor number.
            ending = self._start_ending(order, process, beating, serving, leaving)
            await asyncio.shield(ending)

    async def _serve_requests(
        self, process: HostProcess, order: HostOrder, patience: float
    ) -> HostResult | ProcessFailure:
        while True:
            message = await process.receive()
            if isinstance(message, HostResult | ProcessFailure):
                return message
            is_lost = partial(self._presence.is_silent, patience)
            process.send(await self._engine.ask(order, message, is_lost))

    def _check_result(self, order: HostOrder, result: HostResult | ProcessFailure) -> HostResult:
        if isinstance(result, ProcessFailure):
            self._say(f"{order.agent}: {result.render()}")
            kind = FENCED if result.is_lost else None
            raise ApplicationError(result.render(), type=kind, non_retryable=True)
        return result

    def _catch_up(self, order: HostOrder, register: EngineRegister) -> bool:
        """Catch up with the log. Return whether a stop or a restart requires the session to end."""
        place = self._find_folder(order)
        definition = place.definition()
        if definition is None:
            return False
        store = place.store(place.project(definition), register)
        with store.writer(order.agent, wait=STOP_SECONDS) as writer:
            writer.catch_up()
            projection = writer.projection
        last = max((launch.seq for launch in projection.attempts.values()), default=0)
        return projection.run.desired == "stopped" or projection.run.restarted > last

    def _start_ending(
        self, order: HostOrder, process: HostProcess, *tasks: asyncio.Task[Any]
    ) -> "asyncio.Task[None]":
        return self._keep(asyncio.create_task(self._end_process(order, process, *tasks)))

    def _keep(self, task: "asyncio.Task[None]") -> "asyncio.Task[None]":
        """Keep a reference to a task until it has ended."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end_process(
        self, order: HostOrder, process: HostProcess, *tasks: asyncio.Task[Any]
    ) -> None:
        for task in tasks:
            task.cancel()
        if not await process.end():
            await asyncio.to_thread(self._find_folder(order).end_leftover_processes)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find_folder(self, order: HostOrder) -> HostFolder:
        path = self._root / order.workflow.replace("/", "~")
        return HostFolder(path, order.agent, self._host, self._floor, self._credentials)


async def _send_heartbeats() -> None:
    """Send an activity's heartbeats until the task is cancelled."""
    timeout = activity.info().heartbeat_timeout or timedelta(days=FLEET_LEASE_DAYS)
    while True:
        activity.heartbeat()
        await asyncio.sleep(timeout.total_seconds() * FLEET_BEAT_SHARE)


def _send_notification(
    definition: AgentDefinition, order: HostOrder, what: str, words: str, host: str
) -> list[str]:
    """Send a notification as a local supervisor would, and return the errors."""
    parsed = manifest.parse(definition.manifest)
    redaction = Redaction(tuple(parsed.redact.allow))
    # Definitions from older versions do not name a project, so use the fleet's namespace instead.
    project = definition.project or order.workflow.rpartition("/")[0]
    notice = make_notice(order.agent, parse_notification(what), words, project=project, host=host)
    return make_host_notifier(parsed.notify, redaction).send(
        notice.title, notice.body, notice.severity
    )
