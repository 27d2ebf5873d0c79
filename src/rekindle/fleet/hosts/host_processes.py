"""Run cycles in separate processes on a host, and forward their requests to the engine."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess

import msgspec
from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.fleet.agent.host_orders import FENCED, HostOrder, HostResult, LeaseEnd
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.update_errors import is_overlooked
from rekindle.fleet.hosts.fleet_size import FleetSize
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import (
    EndedLease,
    EngineAnswer,
    EngineCutOff,
    EngineRequest,
    LeaseRefusal,
    ProcessFailure,
    UnfitRequest,
)
from rekindle.fleet.hosts.host_metrics import HostMetrics
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS, STOP_SECONDS
from rekindle.thresholds.fleet_limits import (
    FLEET_ASK_AGAIN_SECONDS,
    FLEET_SIGNAL_SECONDS,
)

HostWork = Callable[[HostOrder, HostFolder, Connection], None]
_AGAIN = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.UNKNOWN,
}
"""Status codes of errors that a retry may resolve."""
_SHARED = (
    "rekindle.fleet.hosts.host_cycle",
    # Other modules import these lazily, but every cycle needs them.
    "ctypes",
    "encodings.utf_8_sig",
    "rekindle.policy.fleet.connection_check",
    "rekindle.policy.redact.find_secrets",
    "rekindle.policy.redact.redaction",
    "rekindle.stores.files.recovery",
    "rekindle.stores.files.writer",
)
"""Modules that the fork server imports once for all processes on a host."""


class ForkServer:
    """Forks processes from a process without threads, because forking a threaded one can hang."""

    def __init__(self) -> None:
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(_SHARED))

    def begin(self, work: HostWork, order: HostOrder, place: HostFolder) -> "HostProcess":
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(order, place, theirs))
        process.start()
        theirs.close()
        return HostProcess(process, ours)


class HostProcess:
    """A process that runs a cycle and sends requests to the worker."""

    def __init__(self, process: ForkServerProcess, line: Connection) -> None:
        self._process, self._line = process, line
        self._is_asked_to_end = False
        self._heard = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(line.fileno(), self._heard.set)

    async def receive(self) -> EngineRequest | HostResult | ProcessFailure:
        """Return the process's next request or result, or a failure if it exited without either."""
        try:
            # The event loop may report the pipe as readable again while it is being read. A
            # blocking read would then block the whole host until the next request.
            while not self._line.poll():
                self._heard.clear()
                await self._heard.wait()
            message: EngineRequest | HostResult | ProcessFailure = self._line.recv()
        except (EOFError, OSError):
            return ProcessFailure(
                "the process that ran the cycle ended unexpectedly",
                "see run/output.log on that host",
            )
        return message

    def send(self, answer: EngineAnswer) -> None:
        with contextlib.suppress(OSError):
            self._line.send(answer)

    def ask_to_end(self) -> None:
        """Tell the process to end the agent's session, report the end, and return the lease.

        The signal is sent only once, because a second one would end the process immediately.
        """
        if not self._is_asked_to_end:
            self._is_asked_to_end = True
            self._send_signal(signal.SIGTERM)

    async def end(self) -> bool:
        """Immediately end the process and everything that it started.

        Return False if the process had to be killed, in which case its child processes may still be
        running.
        """
        self._loop.remove_reader(self._line.fileno())
        self._line.close()  # from now on, requests fail as if the lease were lost
        ended = asyncio.Event()
        self._loop.add_reader(self._process.sentinel, ended.set)
        # A second signal means "immediately". Two signals sent together would arrive as one, and a
        # different signal might be ignored, as SIGHUP is under nohup.
        for patience in (FLEET_SIGNAL_SECONDS, STOP_SECONDS):
            self._send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), patience)
        self._loop.remove_reader(self._process.sentinel)
        self._process.kill()
        self._process.join()
        self._process.close()
        return ended.is_set()

    def _send_signal(self, number: signal.Signals) -> None:
        pid = self._process.pid
        if pid is not None and self._process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class EngineClient:
    """Sends requests to workflows, retrying until they are answered."""

    def __init__(self, client: Client, metrics: HostMetrics | None = None) -> None:
        self.client = client
        self._metrics = metrics
        self._size = FleetSize(client)

    def count_cut_off(self) -> None:
        if self._metrics is not None:
            self._metrics.count_cut_off()

    async def ask(
        self, order: HostOrder, request: EngineRequest, is_lost: Callable[[], bool]
    ) -> EngineAnswer:
        """Send a request to the agent's workflow, retrying until it answers.

        If `is_lost` returns True, return EngineCutOff, because another host may have the agent.
        """
        while True:
            try:
                return await self._send_request(order.workflow, request)
            except WorkflowUpdateFailedError as refused:
                if not is_overlooked(refused):
                    return _make_refusal(refused)
            except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as failed:
                if _is_cancelled():
                    raise asyncio.CancelledError from failed
                if isinstance(failed, RPCError) and failed.status == RPCStatusCode.NOT_FOUND:
                    return LeaseRefusal("the agent was removed from the fleet")
                if isinstance(failed, RPCError) and failed.status not in _AGAIN:
                    return UnfitRequest(f"the engine refused the request: {failed.message}")
                if is_lost():
                    return EngineCutOff("the engine does not answer")
            await asyncio.sleep(FLEET_ASK_AGAIN_SECONDS)

    async def _send_request(self, workflow: str, request: EngineRequest) -> EngineAnswer:
        handle = self.client.get_workflow_handle_for(AgentWorkflow.run, workflow)
        most = timedelta(seconds=FLEET_RPC_SECONDS)
        answer: EngineAnswer
        if isinstance(request, LeaseRequest):
            request = msgspec.structs.replace(request, agents=await self._size.read())
            answer = await handle.execute_update(AgentWorkflow.take_up, request, rpc_timeout=most)
        elif isinstance(request, LeaseEnd):
            await handle.execute_update(AgentWorkflow.end_lease, request, rpc_timeout=most)
            answer = EndedLease()
        else:
            answer = await handle.execute_update(
                AgentWorkflow.commit, request, id=request.id, rpc_timeout=most
            )
        if self._metrics is not None:
            self._metrics.observe(workflow, answer)
        return answer


def _is_cancelled() -> bool:
    """Return whether this task is being cancelled. The SDK reports this as a different error."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _make_refusal(refused: WorkflowUpdateFailedError) -> EngineAnswer:
    cause = refused.cause
    if not isinstance(cause, ApplicationError):
        return UnfitRequest(str(cause))
    if cause.type != FENCED:
        return UnfitRequest(cause.message)
    return LeaseRefusal(cause.message)
