"""Run cycles on a host under leases, from the order to begin until the lease's end."""

import asyncio
import secrets
from collections.abc import Callable

import msgspec
from temporalio.exceptions import ApplicationError

from rekindle.fleet.agent.host_orders import CUT, FAILED, FENCED, HostOrder, HostResult, LeaseEnd
from rekindle.fleet.hosts.host_messages import ProcessFailure
from rekindle.fleet.hosts.host_presence import Vouched
from rekindle.fleet.hosts.host_processes import EngineClient, HostProcess
from rekindle.policy.fleet.agent_leases import OpenLease


def make_lease_id() -> str:
    return secrets.token_hex(8)


class HostSession:
    """A cycle's process on this host, and the lease that it runs under."""

    def __init__(self, order: HostOrder, process: HostProcess, vouched: Vouched) -> None:
        self.order, self._process, self._vouched = order, process, vouched
        self.is_running = True
        """Whether the process may still be asked to end."""
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done = asyncio.Event()
        """Set when the process has ended, whether the engine knows that or not."""

    async def wait_until_open(self) -> None:
        """Wait until the workflow has opened the lease. Raise an error if the session ended."""
        await self._opened

    def ask_to_end(self) -> None:
        """Let the process end the agent's session, and return the lease."""
        if self.is_running:
            self._process.ask_to_end()

    def drop(self) -> None:
        """End the session immediately, because its lease is over."""
        self._vouched.lose()

    async def run(
        self, engine: EngineClient, end_process: Callable[[], "asyncio.Task[None]"]
    ) -> LeaseEnd:
        """Serve the process's requests until it exits or the lease is lost."""
        serving = asyncio.create_task(self._serve_requests(engine))
        losing = asyncio.create_task(self._vouched.lost.wait())
        try:
            await asyncio.wait({serving, losing}, return_when=asyncio.FIRST_COMPLETED)
            result = serving.result() if serving.done() else None
        except Exception as error:
            if not self._opened.done():
                self._opened.set_exception(error)
            raise
        finally:
            self.is_running = False
            serving.cancel()
            losing.cancel()
            try:
                await asyncio.shield(end_process())
            finally:
                self._vouched.ended.set()
                self.done.set()
        end = self._explain_end(result)
        if not self._opened.done():
            self._opened.set_exception(
                ApplicationError(end.words, type=end.kind or FAILED, non_retryable=True)
            )
        return end

    async def _serve_requests(self, engine: EngineClient) -> HostResult | ProcessFailure:
        while True:
            message = await self._process.receive()
            if isinstance(message, HostResult | ProcessFailure):
                return message
            answer = await engine.ask(self.order, message, self._vouched.lost.is_set)
            if isinstance(answer, OpenLease):
                self.order = msgspec.structs.replace(self.order, generation=answer.generation)
                if not self._opened.done():
                    self._opened.set_result(None)
            self._process.send(answer)

    def _explain_end(self, result: HostResult | ProcessFailure | None) -> LeaseEnd:
        kind, words, is_leaving = "", "", False
        match result:
            case None:
                kind = CUT
                words = "the engine did not confirm the lease, so another host may have the agent"
            case ProcessFailure():
                kind = FENCED if result.is_lost else FAILED
                words = result.render()
            case HostResult():
                is_leaving = result.is_leaving
        return LeaseEnd(
            generation=self.order.generation,
            lease=self.order.lease,
            kind=kind,
            words=words,
            is_leaving=is_leaving,
        )
