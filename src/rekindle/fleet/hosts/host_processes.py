"""A host's part: agents' cycles in processes of their own, and the line from each to the engine."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess

from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.fleet.agent.host_orders import (
    FENCED,
    HostOrder,
    HostResult,
)
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.update_errors import is_overlooked
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import (
    EngineAnswer,
    EngineCutOff,
    EngineRequest,
    LeaseRefusal,
    ProcessFailure,
    UnfitRequest,
)
from rekindle.policy.fleet.agent_registry import LeaseRequest
from rekindle.policy.settings.runtime_settings import (
    FLEET_RPC_SECONDS,
    STOP_SECONDS,
)
from rekindle.thresholds.fleet_limits import (
    FLEET_ASK_AGAIN_SECONDS,
    FLEET_PROBE_SHARE,
    FLEET_PROBE_WAIT_SHARE,
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
"""What asking again may mend."""
_SHARED = (
    "rekindle.fleet.hosts.host_cycle",
    # What it imports only when it is needed, and every cycle needs.
    "ctypes",
    "encodings.utf_8_sig",
    "rekindle.policy.fleet.connection_check",
    "rekindle.policy.redact.find_secrets",
    "rekindle.policy.redact.redaction",
    "rekindle.stores.files.recovery",
    "rekindle.stores.files.writer",
)
"""What is imported once, for all the processes of a host."""


class ForkServer:
    """Starts processes from one that has no threads: whoever forks among threads may hang."""

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
    """A process that works for us, and asks."""

    def __init__(self, process: ForkServerProcess, line: Connection) -> None:
        self._process, self._line = process, line
        self._is_asked_to_end = False
        self._heard = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(line.fileno(), self._heard.set)

    async def receive(self) -> EngineRequest | HostResult | ProcessFailure:
        """What it asks, or has come to; one that ends without a word has failed."""
        try:
            # It is said to be readable once more while it is being read: whoever then waited here
            # for the next question would keep all of this host waiting.
            while not self._line.poll():
                self._heard.clear()
                await self._heard.wait()
            found: EngineRequest | HostResult | ProcessFailure = self._line.recv()
        except (EOFError, OSError):
            return ProcessFailure(
                "the process of the cycle is gone", "see run/output.log on its host"
            )
        return found

    def send(self, answer: EngineAnswer) -> None:
        with contextlib.suppress(OSError):
            self._line.send(answer)

    def ask_to_end(self) -> None:
        """It ends the agent's session, says so to the engine, and gives the lease back.

        Said twice it would end it at once.
        """
        if not self._is_asked_to_end:
            self._is_asked_to_end = True
            self._send_signal(signal.SIGTERM)

    async def end(self) -> bool:
        """End it, at once, whatever is under way; it ends what it has started.

        False: it did not within reason, and was killed. Then somebody has to look for that.
        """
        self._loop.remove_reader(self._line.fileno())
        self._line.close()  # whatever it asks now, it has lost the agent
        ended = asyncio.Event()
        self._loop.add_reader(self._process.sentinel, ended.set)
        # The second one says "at once". Of two that come together it would hear one; and another
        # kind may be ignored here, as SIGHUP is under nohup.
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
    """The workflows of a fleet, asked until they answer."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._answered = self._asked = time.monotonic()

    def heard(self) -> None:
        """It has just given us something to do."""
        self._answered = time.monotonic()

    async def is_cut(self, patience: float) -> bool:
        """Whether there was no answer for so long: somebody else has then what waited for one.

        Looked at before it is asked anew: whoever was frozen has lost it, though it answers now.
        One question is for all agents of a host.
        """
        if self._was_silent(patience):
            return True
        if time.monotonic() - self._asked > patience * FLEET_PROBE_SHARE:
            self._asked = time.monotonic()
            with contextlib.suppress(RPCError):
                most = timedelta(seconds=patience * FLEET_PROBE_WAIT_SHARE)
                if await self.client.service_client.check_health(timeout=most):
                    self.heard()
        return self._was_silent(patience)

    def _was_silent(self, patience: float) -> bool:
        return time.monotonic() - self._answered > patience

    async def ask(self, order: HostOrder, asked: EngineRequest, patience: float) -> EngineAnswer:
        """Ask the agent's workflow; whatever happens meanwhile, it is asked until it is cut off.

        `patience`: so long without an answer from anybody there, another host has what we had.
        """
        while True:
            try:
                return await self._send_request(order.workflow, asked)
            except WorkflowUpdateFailedError as refused:
                if not is_overlooked(refused):
                    return _make_refusal(refused)
            except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as failed:
                if _is_cancelled():
                    raise asyncio.CancelledError from failed
                if isinstance(failed, RPCError) and failed.status == RPCStatusCode.NOT_FOUND:
                    return LeaseRefusal("the agent was removed")
                if isinstance(failed, RPCError) and failed.status not in _AGAIN:
                    return UnfitRequest(f"the engine refuses it: {failed.message}")
                if self._was_silent(patience):
                    return EngineCutOff(f"no answer from the engine for {patience:g} s")
            await asyncio.sleep(FLEET_ASK_AGAIN_SECONDS)

    async def _send_request(self, workflow: str, asked: EngineRequest) -> EngineAnswer:
        handle = self.client.get_workflow_handle_for(AgentWorkflow.run, workflow)
        most = timedelta(seconds=FLEET_RPC_SECONDS)
        if isinstance(asked, LeaseRequest):
            return await handle.execute_update(AgentWorkflow.take_up, asked, rpc_timeout=most)
        return await handle.execute_update(
            AgentWorkflow.commit, asked, id=asked.id, rpc_timeout=most
        )


def _is_cancelled() -> bool:
    """Whether we are to end: the engine's client makes an error of its own of that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _make_refusal(refused: WorkflowUpdateFailedError) -> EngineAnswer:
    cause = refused.cause
    if not isinstance(cause, ApplicationError):
        return UnfitRequest(str(cause))
    if cause.type != FENCED:
        return UnfitRequest(cause.message)
    return LeaseRefusal(cause.message)
