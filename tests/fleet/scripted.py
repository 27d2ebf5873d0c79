"""Scripted hosts: the activities of a fleet without any process behind them.

They make histories of the real workflow, with every branch that it may take, in seconds.
"""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from fleet.deciding import sandboxed
from rekindle.documents import events
from rekindle.fleet.agent.host_orders import (
    FENCED,
    FULL,
    HostLoss,
    HostOrder,
    HostResult,
    LeaseEnd,
    make_host_queue,
    make_pool_queue,
)
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.hosts.host_processes import EngineClient
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.fleet.agent_registry import (
    AgentDefinition,
    CommitRequest,
    CommitResult,
)
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.next_move import AgentLimits

HEARTBEAT_SECONDS = 2.0
_EXITS = {"limit", "crash", "auth", "billing"}


def definition(pool: str, **more) -> AgentDefinition:
    given = {
        "manifest": "version: 1\n",
        "heartbeat_seconds": HEARTBEAT_SECONDS,
        "limits": AgentLimits(),
    }
    return AgentDefinition(pool=pool, **given | more)


class Hosts:
    """The hosts `a` and `b` of one pool; each cycle takes the next step of the script."""

    def __init__(self, client: Client, pool: str, script: Iterable[str]) -> None:
        self._client, self._pool = client, pool
        self._script = iter(script)
        self._engine = EngineClient(client)
        self.offers = itertools.cycle("ba")
        """The host that answers the pool."""
        self.broken = ""
        """The host that cannot run anything."""
        self.is_continued = asyncio.Event()
        """Whether a workflow continued as a new run in the middle of a cycle."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_brief_begun = asyncio.Event()
        self.is_deaf = False
        """No notification is ever answered, and no brief finishes."""
        self.done = asyncio.Event()
        """Whether the script is at its end."""

    @contextlib.asynccontextmanager
    async def working(self, **how) -> AsyncIterator[None]:
        deciding = sandboxed(self._client, AgentWorkflow, **how)
        offering = Worker(
            self._client,
            task_queue=make_pool_queue(self._pool),
            activities=[self.offer, self.notify],
        )
        activities = [self.begin_cycle, self.write_brief, self.hear, self.drop_lease]
        hosts = [
            Worker(
                self._client,
                task_queue=make_host_queue(f"{self._pool}-{host}"),
                activities=activities,
            )
            for host in "ab"
        ]
        async with contextlib.AsyncExitStack() as stack:
            for worker in (deciding, offering, *hosts):
                await stack.enter_async_context(worker)
            yield

    @activity.defn
    async def offer(self, _order: HostOrder, _shunned: list[str]) -> str:
        return f"{self._pool}-{next(self.offers)}"

    @activity.defn
    async def notify(self, order: HostOrder, what: str, words: str) -> None:
        del order, what, words
        if self.is_deaf:
            await asyncio.Event().wait()

    @activity.defn
    async def hear(self, order: HostOrder) -> None:
        del order

    @activity.defn
    async def drop_lease(self, order: HostOrder) -> None:
        del order

    @activity.defn
    async def write_brief(self, order: HostOrder) -> HostResult:
        self.is_brief_begun.set()
        if self.is_deaf:
            await asyncio.Event().wait()
        if not order.lease:
            order, seq = await self._take_up(order)
        else:
            seq = (await self._kept(order)).seq
        path = f"memories/archive/brief-{seq}.md"
        brief = events.BriefCommitted(ts=_now(), sha256=path, path=path, by="machine")
        return HostResult(await self._commit(order, seq, [brief], {path: "# Brief\n"}))

    @activity.defn
    async def begin_cycle(self, order: HostOrder) -> None:
        if self.broken and activity.info().task_queue.endswith(f"-{self.broken}"):
            raise ApplicationError("there is no git here", non_retryable=True)
        turn = next(self._script, "wait")
        if turn == "fenced":
            raise ApplicationError("another host has it", type=FENCED, non_retryable=True)
        if turn == "full":
            raise ApplicationError("all slots are taken", type=FULL, non_retryable=True)
        if turn == "fail":
            raise ApplicationError("there is no such program here", non_retryable=True)
        order, seq = await self._take_up(order)
        task = asyncio.create_task(self._hold(turn, order, seq))
        self._tasks.add(task)

    async def _hold(self, turn: str, order: HostOrder, seq: int) -> None:
        """Work under a lease, and report its end as a host does."""
        if turn == "fenced later":
            await self._end_lease(order, kind=FENCED, words="another host has it")
            return
        known = await self._kept(order)
        number = known.current_cycle
        for left in (mark for mark, one in known.attempts.items() if not one.exit):
            lost = events.LaunchEnded(
                ts=_now(), launch=left, cycle=number, session=left, exit="lost", opened=True
            )
            seq = await self._commit(order, seq, [lost])
        if not known.is_cycle_open:
            started = events.CycleStarted(ts=_now(), cycle=number)
            seq = await self._commit(order, seq, [started])
        launch = secrets.token_hex(4)
        begun = events.LaunchStarted(
            ts=_now(), launch=launch, cycle=number, session=launch, harness="command"
        )
        seq = await self._commit(order, seq, [begun])
        seq = await self._stay(turn, order, seq, launch)
        if turn.startswith("die"):
            await self._die(order)
            return
        ended = events.LaunchEnded(
            ts=_now(),
            launch=launch,
            cycle=number,
            session=launch,
            exit=turn if turn in _EXITS else "clean",
            opened=True,
            resets_at=int((_now() + timedelta(seconds=2)).timestamp()) if turn == "limit" else None,
        )
        seq = await self._commit(order, seq, [ended])
        if turn not in _EXITS:
            await self._end(order, seq, number, is_last=turn in {"last", "talk"})
        await self._end_lease(order)

    async def _end_lease(self, order: HostOrder, **how) -> None:
        end = LeaseEnd(generation=order.generation, lease=order.lease, **how)
        await self._engine.ask(order, end, lambda: False)

    async def _die(self, order: HostOrder) -> None:
        """Do what the workflow of a dead host does."""
        await asyncio.sleep(HEARTBEAT_SECONDS)
        handle = self._client.get_workflow_handle_for(AgentWorkflow.run, order.workflow)
        await handle.signal(AgentWorkflow.host_lost, HostLoss("dead", order.lease))

    async def _kept(self, order: HostOrder) -> Projection:
        handle = self._client.get_workflow_handle_for(AgentWorkflow.run, order.workflow)
        return (await handle.query(AgentWorkflow.kept)).projection

    async def _stay(self, turn: str, order: HostOrder, seq: int, launch: str) -> int:
        """Do the actions of a step while its session runs."""
        if turn == "wait":
            self.done.set()
            await asyncio.Event().wait()
        if turn in {"beat and end", "die later"}:
            await self.is_brief_begun.wait()
        handle = self._client.get_workflow_handle(order.workflow)
        first = (await handle.describe()).run_id
        while turn == "talk" and not self.is_continued.is_set():
            said = events.HangDetected(ts=_now(), launch=launch, words="silent", ended=False)
            seq = await self._commit(order, seq, [said])
            if (await handle.describe()).run_id != first:
                self.is_continued.set()
        return seq

    async def _end(self, order: HostOrder, seq: int, number: int, *, is_last: bool) -> int:
        path = f"memories/archive/relay-{number}.md"
        relay = events.RelayCommitted(ts=_now(), sha256=path, path=path, by="agent")
        seq = await self._commit(order, seq, [relay], {path: f"## Next Action\nStep {number}\n"})
        follows: list[events.AnyEvent] = [
            events.CycleEnded(ts=_now(), cycle=number, how="draft", relay=path)
        ]
        if is_last:
            follows.append(events.RunEnded(ts=_now(), why="done"))
        return await self._commit(order, seq, follows)

    async def _take_up(self, order: HostOrder) -> tuple[HostOrder, int]:
        """Open the lease; return the order with the lease's id, and the log's end."""
        host = activity.info().task_queue.removeprefix(make_host_queue(""))
        lease = secrets.token_hex(4)
        asked = LeaseRequest(generation=order.generation, lease=lease, host=host)
        opened = await self._engine.ask(order, asked, lambda: False)
        assert opened.kept is not None
        order = msgspec.structs.replace(order, lease=lease, generation=opened.generation)
        return order, opened.kept.projection.seq

    async def _commit(self, order: HostOrder, seq: int, new: list[events.AnyEvent], documents=None):
        asked = CommitRequest(
            id=secrets.token_hex(8),
            generation=order.generation,
            lease=order.lease,
            known=seq,
            lines=tuple(events.render(one).decode() for one in new),
            documents=documents or {},
        )
        answer = await self._engine.ask(order, asked, lambda: False)
        assert isinstance(answer, CommitResult), answer
        return seq + len(answer.lines)


def _now() -> datetime:
    return datetime.now(UTC)
