"""Keep the engine informed that this host is alive, and of the leases that it vouches for.

One heartbeat serves all sessions. A session may run only while the engine confirms the heartbeats
that name its lease. It ends if they fail for long enough, whatever the reason: another host may
have the agent by then. It also ends if the engine was restored from a backup, because such an
engine does not know the lease.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import timedelta

import msgspec
from temporalio import activity
from temporalio.api.common.v1 import Payloads
from temporalio.api.workflowservice.v1 import RecordActivityTaskHeartbeatRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import OwnershipError
from rekindle.fleet.agent.host_orders import (
    CUT,
    DECISION_QUEUE,
    HostLoss,
    HostReport,
    VouchedLease,
    make_host_workflow,
)
from rekindle.fleet.agent.host_workflow import HostWorkflow
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.host_reports import find_attend_order, read_report
from rekindle.policy.settings.runtime_settings import (
    FLEET_CONFIRM_SHARE,
    FLEET_DECIDER_SECONDS,
    FLEET_HOST_BEAT_SHARE,
    FLEET_HOST_EVENTS,
    FLEET_HOST_RETRY_SHARE,
    FLEET_HOST_TASK_SECONDS,
    FLEET_PROBE_WAIT_SHARE,
    FLEET_RPC_SECONDS,
    FLEET_VOUCH_SECONDS,
)

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_GONE = RPCStatusCode.NOT_FOUND


class Vouched:
    """A lease that this host vouches for."""

    def __init__(self, lease: VouchedLease) -> None:
        self.lease = lease
        self.confirmed = 0.0
        """When the last confirmed heartbeat with this lease was sent, in monotonic seconds."""
        self.lost = asyncio.Event()
        """Set when the session must end."""
        self.changed = asyncio.Event()
        """Set when the lease was confirmed for the first time, or lost."""
        self.ended = asyncio.Event()
        """Set when no process runs under the lease anymore."""

    def lose(self) -> None:
        self.lost.set()
        self.changed.set()


class HostPresence:
    def __init__(self, client: Client, about: HostReport, say: Callable[[str], None]) -> None:
        self._client, self._about, self._say = client, about, say
        self._timeout = about.heartbeat_seconds
        self._token: bytes | None = None
        self._handle: WorkflowHandle[HostWorkflow, None] | None = None
        self._beat = 0
        """Number of the last heartbeat that the engine confirmed."""
        self._confirmed = time.monotonic()
        self._vouched: dict[str, Vouched] = {}
        self._wanted = asyncio.Event()
        """Set when a heartbeat is wanted immediately."""
        self._attended = asyncio.Event()
        """Set while the engine's order to attend is open here."""
        self._left = asyncio.Event()
        self._is_warned = False
        self.is_ready = asyncio.Event()
        """Set once the engine has confirmed a heartbeat."""

    @property
    def leases(self) -> int:
        return len(self._vouched)

    def set_draining(self) -> None:
        self._about = msgspec.structs.replace(self._about, is_draining=True)
        self._wanted.set()

    def is_silent(self, seconds: float) -> bool:
        """Return whether the engine has not confirmed a heartbeat for this long."""
        return time.monotonic() - self._confirmed > seconds

    @activity.defn
    async def attend(self) -> list[VouchedLease]:
        """Keep this order open while the host runs, and return the leases that it leaves behind.

        `keep` sends the heartbeats. If the engine has given up the host, the order is not answered.
        An engine that was restored from a backup still has it, and would take an answer for the end
        of all leases that it knows.
        """
        token = self._token = activity.info().task_token
        self._attended.set()
        self._wanted.set()
        with contextlib.suppress(asyncio.CancelledError):  # the worker is shutting down
            while self._token == token and not self._left.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._left.wait(), self._timeout)
        if self._token != token:
            activity.raise_complete_async()
        return [vouched.lease for vouched in self._vouched.values()]

    def leave(self) -> None:
        """End the order to attend, which tells the engine that the host leaves in good order."""
        self._left.set()

    async def vouch(self, workflow: str, lease: str) -> Vouched:
        """Vouch for a lease. Return when the engine has confirmed a heartbeat with the lease."""
        vouched = self._vouched[lease] = Vouched(VouchedLease(workflow, lease))
        self._wanted.set()
        with contextlib.suppress(TimeoutError):
            most = min(self._timeout * FLEET_CONFIRM_SHARE, FLEET_VOUCH_SECONDS)
            await asyncio.wait_for(vouched.changed.wait(), most)
        if vouched.lost.is_set() or not vouched.confirmed:
            self.release(vouched)
            words = "the engine does not confirm the heartbeats of this host"
            raise ApplicationError(words, type=CUT, non_retryable=True)
        return vouched

    def release(self, vouched: Vouched) -> None:
        vouched.ended.set()
        self._vouched.pop(vouched.lease.lease, None)

    async def keep(self) -> None:
        """Send heartbeats until the task is cancelled.

        Raises:
            OwnershipError: Another worker uses the name of this host.
        """
        watching = asyncio.create_task(self._watch_confirmations())
        try:
            while True:
                self._wanted.clear()
                pause = FLEET_HOST_RETRY_SHARE
                with contextlib.suppress(RPCError):
                    if self._token is None:
                        await self._begin_attending()
                    elif await self._send_heartbeat(self._token):
                        pause = FLEET_HOST_BEAT_SHARE
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), self._timeout * pause)
        finally:
            watching.cancel()

    async def _watch_confirmations(self) -> None:
        """End the sessions whose leases the engine has not confirmed in time."""
        while True:
            self._end_unconfirmed()
            await asyncio.sleep(self._timeout * FLEET_HOST_RETRY_SHARE)

    def _end_unconfirmed(self) -> None:
        now, most = time.monotonic(), self._timeout * FLEET_CONFIRM_SHARE
        for vouched in self._vouched.values():
            if vouched.confirmed and now - vouched.confirmed > most:
                vouched.lose()

    async def _send_heartbeat(self, token: bytes) -> bool:
        """Send one heartbeat, and return whether the engine confirmed it.

        First compare the number of the engine's last heartbeat. A lower one than ours means that
        the engine was restored from a backup, and does not know all of our leases.
        """
        wait = timedelta(seconds=self._timeout * FLEET_PROBE_WAIT_SHARE)
        report = self._make_report()
        sent = time.monotonic()
        try:
            if await self._read_last_beat(wait) < self._beat:
                self._say("the engine was restored from a backup; this host ends its sessions")
                self._lose_all()
                return False
            details = await self._client.data_converter.encode([report])
            await self._client.workflow_service.record_activity_task_heartbeat(
                RecordActivityTaskHeartbeatRequest(
                    namespace=self._client.namespace,
                    task_token=token,
                    details=Payloads(payloads=details),
                    identity=self._client.identity,
                ),
                timeout=wait,
            )
        except RPCError as error:
            if error.status == _GONE:
                self._lose_all()
            return False
        self._confirm(report, sent)
        return True

    def _confirm(self, report: HostReport, sent: float) -> None:
        self._end_unconfirmed()  # a host that was frozen has lost its leases by now
        self._beat, self._confirmed = report.beat, sent
        self.is_ready.set()
        for lease in report.leases:
            vouched = self._vouched.get(lease.lease)
            if vouched is not None and not vouched.lost.is_set():
                vouched.confirmed = sent
                vouched.changed.set()

    def _lose_all(self) -> None:
        """End all sessions, because the engine has given up this host or forgotten its leases."""
        for vouched in self._vouched.values():
            vouched.lose()
        self._token, self._beat = None, 0
        self._attended.clear()

    def _make_report(self) -> HostReport:
        leases = tuple(vouched.lease for vouched in self._vouched.values())
        return msgspec.structs.replace(self._about, beat=self._beat + 1, leases=leases)

    async def _read_last_beat(self, wait: timedelta) -> int:
        assert self._handle is not None, "attending"  # noqa: S101 - for the type checker
        described = await self._handle.describe(rpc_timeout=wait)
        if described.status != WorkflowExecutionStatus.RUNNING:
            raise RPCError("the host's workflow has ended", _GONE, b"")
        order = find_attend_order(described)
        if order is None:
            raise RPCError("the engine has given up the host", _GONE, b"")
        report = await read_report(self._client, order)
        return report.beat if report else 0

    async def _begin_attending(self) -> None:
        """Start this host's workflow, after ending the leases of an earlier one."""
        name = make_host_workflow(self._client.namespace, self._about.host)
        for vouched in list(self._vouched.values()):
            if vouched.lost.is_set():
                await vouched.ended.wait()  # before another host may continue the agent
        await self._end_earlier_leases(name)
        self._handle = await self._client.start_workflow(
            HostWorkflow.run,
            self._make_report(),
            id=name,
            task_queue=DECISION_QUEUE,
            # The history is short, and its agents wait for the decision that the host is lost.
            task_timeout=timedelta(seconds=FLEET_HOST_TASK_SECONDS),
            id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
            rpc_timeout=_MOST,
        )
        run = self._handle.first_execution_run_id
        self._handle = self._client.get_workflow_handle_for(HostWorkflow.run, name, run_id=run)
        try:
            await asyncio.wait_for(self._attended.wait(), FLEET_DECIDER_SECONDS)
        except TimeoutError:
            self._warn_without_decider()

    def _warn_without_decider(self) -> None:
        if not self._is_warned:
            self._is_warned = True
            self._say(
                "! no worker decides, so this host gets no agents\n  → `rekindle fleet decider`"
            )

    async def _end_earlier_leases(self, name: str) -> None:
        """Tell the agents that an earlier life of this host vouched for that it is over.

        The earlier life is a worker that was killed, or this worker before it lost its leases.
        """
        report = await self._find_report(name)
        if report is not None and report.place != self._about.place:
            await self._wait_for_other_worker(name, report)
            return
        for earlier in report.leases if report else ():
            handle = self._client.get_workflow_handle_for(AgentWorkflow.run, earlier.workflow)
            loss = HostLoss(self._about.host, earlier.lease)
            try:
                await handle.signal(AgentWorkflow.host_lost, loss, rpc_timeout=_MOST)
            except RPCError as error:
                if error.status != _GONE:
                    raise

    async def _wait_for_other_worker(self, name: str, report: HostReport) -> None:
        """Wait until the engine has given up a worker of the same name on another machine."""
        while later := await self._find_report(name):
            if later.beat != report.beat:
                raise OwnershipError(
                    f"another worker is host {report.host} of this fleet",
                    hint="start this worker with another --host",
                )
            await asyncio.sleep(self._timeout * FLEET_HOST_BEAT_SHARE)

    async def _find_report(self, name: str) -> HostReport | None:
        """Return the last report of a host whose workflow is open, or None."""
        try:
            described = await self._client.get_workflow_handle(name).describe(rpc_timeout=_MOST)
        except RPCError as error:
            if error.status == _GONE:
                return None
            raise
        if described.status != WorkflowExecutionStatus.RUNNING:
            return None
        order = find_attend_order(described)
        # Without the order, the workflow has not begun, or it is about to report a loss. Do not
        # start another one until it has done so.
        if order is None and described.history_length >= FLEET_HOST_EVENTS:
            raise RPCError("the host's workflow has not ended yet", RPCStatusCode.UNAVAILABLE, b"")
        return await read_report(self._client, order) if order else None
