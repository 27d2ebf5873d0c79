"""Cycles without an agent: a host that repeats the messages of one real cycle.

So the measurement covers the engine and the workflow alone. The messages are recorded in the same
run: `recorded` takes a real agent of a real worker through a few cycles, and reads the requests to
its workflow and the answers from the workflow's history.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from temporalio import activity
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from fleet.apart import Apart
from fleet.bare import BareWorkflow
from fleet.deciding import deciding
from rekindle import config
from rekindle.documents import events
from rekindle.errors.runs import EngineError
from rekindle.fleet.agent.host_orders import (
    DECISION_QUEUE,
    HostOrder,
    LeaseEnd,
    make_host_queue,
)
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.fleet.agent_registry import (
    AgentDefinition,
    CommitRequest,
    RegisteredAgent,
    append_events,
    hash_definition,
    hash_projection,
    make_draft_name,
)
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

AGENT = "trades"
HOST = "pace"
RECORDED_CYCLES = 3
STARTING_SECONDS = 240
RECORDING_SECONDS = 400
RETRY_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")
PROGRAM = """\
import os, sys
sys.stdin.read()
number = len(os.listdir()) + 1
open(f"step-{number}", "w").close()
done = "".join(f"- the parser reads form {n} of the grammar that we were given\\n"
               for n in range(number, number + LINES))
folder = os.environ["REKINDLE_FOLDER"].replace("/agents/", "/drafts/")
with open(folder + "/relay.md", "w") as draft:
    draft.write(f"## Current Phase\\nImplementation\\n\\n## What We Did This Cycle\\n{done}\\n"
                f"## Next Action\\nDo step {number + 1} of the list, then verify it\\n")
"""
"""The fastest possible agent, with a relay of this many lines."""


class Asked(msgspec.Struct, frozen=True):
    """The requests of a workflow in a cycle, and the size of its answers."""

    request: LeaseRequest | CommitRequest | LeaseEnd
    answer: int


class Project:
    """A project whose agents are that program."""

    def __init__(
        self,
        folder: Path,
        address: str,
        *,
        lines: int = 90,
        metrics: object = None,
        heartbeat: str = "10s",
        **entry: object,
    ) -> None:
        self.path = folder
        folder.mkdir(parents=True)
        program = folder / "agent.py"
        program.write_text(f"LINES = {lines}\n{PROGRAM}")
        # Without site-packages or an environment: the start of Python is not what is measured.
        command = [sys.executable, "-I", "-S", str(program)]
        found = {"harness": "command", "command": command} | entry
        manifest = {
            "version": 1,
            "agents": {AGENT: found},
            "runtime": {"brief": {"at": "never"}},
            "fleet": {
                "address": address,
                "heartbeat_timeout": heartbeat,
                "metrics": metrics or {},
            },
        }
        (folder / "rekindle.yaml").write_bytes(msgspec.yaml.encode(manifest))
        (folder / "PROMPT.md").write_text("Do the list.\n")
        self.loaded = config.load_project(folder)

    @property
    def definition(self) -> AgentDefinition:
        assert self.loaded.settings.fleet
        return define_agent(self.loaded, self.loaded.settings.fleet, AGENT)

    def definition_of(self, agent: str) -> AgentDefinition:
        """Return the same agent under another name."""
        found = self.definition
        named = found.manifest.replace(f"  {AGENT}:", f"  {agent}:", 1)
        return msgspec.structs.replace(found, manifest=named)

    async def connect(self) -> Client:
        assert self.loaded.settings.fleet
        return await connect(self.loaded.settings.fleet, self.path, {})

    def worker(self, host: str, slots: int, *options: str) -> Apart:
        """Return when it works; before that, questions about an agent get no answer."""
        argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--trust", "--host", host]
        argv += ["--slots", str(slots), "--root", str(self.path.parent / f"host-{host}")]
        argv += ["--sandbox", "off", *options]
        words = self.path.parent / f"{host}.said"
        with words.open("wb") as said:
            started = Apart(argv, cwd=self.path, stdout=said, stderr=said)
        deadline = time.monotonic() + STARTING_SECONDS
        while b"takes up to" not in words.read_bytes():
            assert started.poll() is None, words.read_text()
            assert time.monotonic() < deadline, "the worker does not start"
            time.sleep(0.05)
        return started


class Pacing:
    """The activities of both workflows: each makes the requests of a real cycle."""

    def __init__(self, client: Client, words: Sequence[Asked], definition: AgentDefinition) -> None:
        self._client, self._words, self._definition = client, words, definition
        self._known: dict[str, Projection] = {}
        self._cycles: dict[str, int] = {}
        self._left = 0
        self._come = asyncio.Event()
        self._gate = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def ours(self, prefix: str, agents: int, cycles: int) -> None:
        """Start this many agents; return when each has finished its first cycle and waits."""
        self._expect(agents)
        for name in _names(prefix, agents):
            await self.start(name, cycles)
        await self._come.wait()

    async def start(self, name: str, cycles: int) -> None:
        """Start an agent, whose run ends after this many cycles."""
        self._cycles[name] = cycles
        kept = RegisteredAgent(
            agent=AGENT,
            definition=self._definition,
            projection=Projection(agent=AGENT),
            host=HOST,
        )
        said = runs.make_desired_event(kept.projection.run, "running", clock.read_clock())
        kept = append_events(kept, events.AgentCreated(ts=clock.read_clock(), agent=AGENT), said)
        await self._client.start_workflow(
            AgentWorkflow.run, kept, id=name, task_queue=DECISION_QUEUE
        )

    async def bare(self, prefix: str, agents: int, cycles: int) -> None:
        self._expect(agents)
        answers = [one.answer for one in self._words]
        for name in _names(prefix, agents):
            await self._client.start_workflow(
                BareWorkflow.run,
                args=[make_host_queue(HOST), cycles, answers],
                id=name,
                task_queue=DECISION_QUEUE,
            )
        await self._come.wait()

    async def on(self, cycles: int) -> None:
        """Let them continue; return when all together have finished this many more cycles."""
        self._left = cycles
        self._come.clear()
        self._gate.set()
        await self._come.wait()

    def release(self) -> None:
        """Let them continue until their run ends."""
        self._gate.set()

    def handle(self, name: str) -> WorkflowHandle[AgentWorkflow, RegisteredAgent]:
        return self._client.get_workflow_handle_for(AgentWorkflow.run, name)

    async def chain(self, name: str) -> list[list[HistoryEvent]]:
        """Return the histories of all runs of a workflow, each carried over into the next."""
        described = await self.handle(name).describe()
        found, run = [], described.raw_info.first_run_id
        while run:
            handle = self._client.get_workflow_handle(name, run_id=run)
            found.append([one async for one in handle.fetch_history_events()])
            last = found[-1][-1].workflow_execution_continued_as_new_event_attributes
            run = last.new_execution_run_id
        return found

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the workers of a host, except the pool's worker, which gets no requests here."""
        running = Worker(
            self._client,
            task_queue=make_host_queue(HOST),
            activities=[self.begin_cycle, self.bare_cycle],
            max_concurrent_activity_task_polls=2,
        )
        async with deciding(self._client, AgentWorkflow, BareWorkflow), running:
            yield

    @activity.defn
    async def begin_cycle(self, order: HostOrder) -> None:
        handle, name = self.handle(order.workflow), order.workflow
        known = self._known.get(name)
        saying = Saying(order.generation, known, is_last=order.generation == self._cycles[name])
        opening, *_ = (one.request for one in self._words)
        opened = await _ask(handle, AgentWorkflow.take_up, saying.open(self._definition))
        assert isinstance(opening, LeaseRequest)
        assert (opened.kept is None) == (known is not None), "it continues from what it has"
        saying.known = known or opened.kept.projection
        self._keep(self._run_cycle(name, saying))

    async def _run_cycle(self, name: str, saying: "Saying") -> None:
        """Commit what a cycle commits, after the activity, as a host does."""
        for one in [one.request for one in self._words][1:]:
            if isinstance(one, LeaseEnd):
                await self._count()
                await _ask(self.handle(name), AgentWorkflow.end_lease, saying.end())
                return
            await self._commit(name, saying, saying.say(one))
            if any('"launch.started"' in line for line in one.lines):
                await self._work(name, saying)

    async def _work(self, name: str, saying: "Saying") -> None:
        """Run a session; here it takes no time and reports nothing."""

    async def _commit(self, name: str, saying: "Saying", asked: CommitRequest) -> None:
        answer = await _ask(self.handle(name), AgentWorkflow.commit, asked)
        assert len(answer.lines) == len(asked.lines), "no other host reports anything here"
        saying.hear(answer.lines)
        self._known[name] = saying.known

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(asyncio.Task.result)

    @activity.defn
    async def bare_cycle(self, name: str, cycle: int) -> None:
        """Make the first request; the others follow after the activity, as with ours."""
        await self._ask_bare(name, self._words[0])
        self._keep(self._run_bare(name))

    async def _run_bare(self, name: str) -> None:
        for one in self._words[1:]:
            if isinstance(one.request, LeaseEnd):
                await self._count()
            await self._ask_bare(name, one)

    async def _ask_bare(self, name: str, one: Asked) -> None:
        handle = self._client.get_workflow_handle(name)
        request = "x" * len(msgspec.json.encode(one.request))
        await handle.execute_update(BareWorkflow.commit, request, id=uuid.uuid4().hex)

    def _expect(self, cycles: int) -> None:
        self._left = cycles
        self._come.clear()
        self._gate.clear()

    async def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._come.set()
        await self._gate.wait()


class Saying:
    """The messages of a recorded cycle, adapted to another one."""

    def __init__(self, cycle: int, known: Projection | None, *, is_last: bool) -> None:
        self._cycle, self._is_last = cycle, is_last
        self.known = known or Projection(agent=AGENT)
        self._fresh = {"launch": uuid.uuid4().hex[:16], "session": str(uuid.uuid4())}
        self._hash = hashlib.sha256(str(self._fresh).encode()).hexdigest()
        self._path = ""

    def open(self, definition: AgentDefinition) -> LeaseRequest:
        seq = self.known.seq
        return LeaseRequest(
            generation=self._cycle,
            lease=self._fresh["launch"],
            host=HOST,
            seq=seq,
            held=hash_projection(self.known) if seq else "",
            defined=hash_definition(definition) if seq else "",
        )

    def end(self) -> LeaseEnd:
        return LeaseEnd(generation=self._cycle, lease=self._fresh["launch"])

    def say(self, recorded: LeaseRequest | CommitRequest | LeaseEnd) -> CommitRequest:
        assert isinstance(recorded, CommitRequest)
        lines = [self._line(msgspec.json.decode(line)) for line in recorded.lines]
        ends = any('"cycle.ended"' in line for line in lines)
        if ends and self._is_last:
            over = events.RunEnded(ts=clock.read_clock(), why="cycles", words="as many as wanted")
            lines.append(events.render(over).decode())
        return CommitRequest(
            id=uuid.uuid4().hex,
            generation=self._cycle,
            lease=self._fresh["launch"],
            known=self.known.seq,
            lines=tuple(lines),
            documents={
                make_draft_name(self._cycle) if "/draft-" in name else self._path: text
                for name, text in recorded.documents.items()
            },
        )

    def report(self, calls: int) -> CommitRequest:
        """Return the reports of this many tool calls, which a host sends together."""
        now = clock.read_clock()
        beats = [
            events.Heartbeat(ts=now, at=f"{self._hash[:20]}-load.seg:{n}", tool="Bash", call=f"{n}")
            for n in range(self.known.seq, self.known.seq + calls)
        ]
        return CommitRequest(
            id=uuid.uuid4().hex,
            generation=self._cycle,
            lease=self._fresh["launch"],
            known=self.known.seq,
            lines=tuple(events.render(one).decode() for one in beats),
        )

    def hear(self, lines: Sequence[str]) -> None:
        self.known = fold_events(self.known, [events.parse(line.encode()) for line in lines])

    def _line(self, fields: dict[str, object]) -> str:
        before = self.known.documents.get("relay")
        fields |= {key: value for key, value in self._fresh.items() if key in fields}
        fields["ts"] = clock.read_clock()
        if "cycle" in fields:
            fields["cycle"] = self._cycle
        match fields["kind"]:
            case "cycle.started":
                fields["relay"] = before.path if before else ""
            case "relay.committed":
                path = f"relay-{self.known.seq + 1:08}-{self._hash[:12]}.md"
                self._path = f"memories/archive/{path}"
                previous = before.sha256 if before else ""
                fields |= {"sha256": self._hash, "previous": previous, "path": self._path}
            case "cycle.ended":
                fields["relay"] = self._path
        return msgspec.json.encode(fields).decode()


RecordedCycle = tuple[Sequence[Asked], AgentDefinition]


async def recorded(address: str, folder: Path) -> RecordedCycle:
    """Return the requests to a workflow in a cycle of an agent that stays on its host."""
    project = Project(folder / "project", address, heartbeat="5m", cycles=RECORDED_CYCLES)
    client = await project.connect()
    agents = AgentClient(client)
    worker = project.worker("recorded", 1)
    try:
        await begun(agents, AGENT, project.definition)
        await over(agents, AGENT, RECORDING_SECONDS)
    finally:
        worker.terminate()
        await asyncio.to_thread(worker.wait, 30)
    handle = client.get_workflow_handle(f"{client.namespace}/{AGENT}")
    cycles: list[list[Asked]] = []
    request: LeaseRequest | CommitRequest | LeaseEnd | None = None
    kinds = {"take_up": LeaseRequest, "commit": CommitRequest, "end_lease": LeaseEnd}
    async for event in handle.fetch_history_events():
        accepted = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
        outcome = event.workflow_execution_update_completed_event_attributes.outcome.success
        if kind := kinds.get(accepted.name):
            request = msgspec.json.decode(accepted.args.payloads[0].data, type=kind)
            cycles += [[]] if kind is LeaseRequest else []
        elif request is not None and (outcome.payloads or isinstance(request, LeaseEnd)):
            size = len(outcome.payloads[0].data) if outcome.payloads else 0
            cycles[-1].append(Asked(request, size))
            request = None
    await handle.terminate()
    assert len(cycles) == RECORDED_CYCLES
    return cycles[1], project.definition  # neither the first nor the last


async def begun(agents: AgentClient, name: str, definition: AgentDefinition) -> None:
    await agents.begin(name, definition)
    await agents.say(
        name, runs.make_desired_event(Projection(agent=name).run, "running", clock.read_clock())
    )


async def over(agents: AgentClient, name: str, seconds: float = 60) -> RegisteredAgent:
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(EngineError):  # a worker on a busy machine answers late
                kept = await agents.kept(name)
                if kept.projection.run.is_over:
                    return kept
            await asyncio.sleep(0.1)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process that the test started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def megabytes(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


async def _ask(handle: WorkflowHandle, update: Any, request: Any) -> Any:
    """Send an update until it is answered: on a busy machine one may take longer than a call."""
    name = getattr(request, "id", "") or uuid.uuid4().hex
    while True:
        try:
            return await handle.execute_update(update, request, id=name)
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            continue
        except RPCError as error:
            if error.status != RPCStatusCode.UNAVAILABLE:
                raise
        await asyncio.sleep(RETRY_SECONDS)


def _names(prefix: str, agents: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(agents)]
