"""A pipeline's workflow, with the real engine and scripted hosts."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer, Worker

from fleet.deciding import sandboxed
from rekindle.documents import events
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    MergeStage,
    PersonAsked,
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
)
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.fleet.pipelines.pipeline_tasks import make_pipeline_id, make_pipeline_queue
from rekindle.fleet.pipelines.pipeline_workflow import PipelineWorkflow
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import WorkerReport
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines import pipeline_moves as moves
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.system import clock

pytestmark = pytest.mark.timeout(120)
POLL_SECONDS = 1.0
STEPS = (
    StepPlan(id="plan"),
    StepPlan(
        id="build", depends_on=("plan",), is_matrix=True, attempts=2, max_concurrency=2, harness="h"
    ),
    StepPlan(id="test", depends_on=("build",)),
)


class ScriptedHosts:
    """The hosts of one pool. Their workers end at once, or when the test says so."""

    def __init__(self, client: Client, pool: str) -> None:
        self.client, self.pool = client, pool
        self.fails = {"b": 1}
        """Number of attempts that fail, by the worker's key."""
        self.waits: set[str] = set()
        """Keys of workers that end only when they are stopped."""
        self.is_waiting = asyncio.Event()
        self.looks_until: int | None = None
        """Number of looks for a person's merge before there is one; None if nothing conflicts."""
        self.looks: list[float] = []
        self.asked: list[str] = []
        self.begun: list[WorkerBegan] = []
        self.stopped: list[str] = []
        self.merged: list[moves.MergeCommits] = []
        self.refusal = ""
        """Why commits cannot be merged, or ""."""
        self.running: set[str] = set()
        self.most = 0
        """Largest number of workers at the same time."""

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        tasks = [self.begin_worker, self.check_worker, self.find_items, self.merge_commits]
        tasks += [self.stop_worker, self.end_run, self.ask_person, self.find_merge]
        hosting = Worker(self.client, task_queue=make_pipeline_queue(self.pool), activities=tasks)
        async with hosting, sandboxed(self.client, PipelineWorkflow):
            yield

    @activity.defn
    async def begin_worker(self, pipeline: str, began: WorkerBegan) -> str:
        self.begun.append(began)
        self.running.add(began.agent)
        self.most = max(self.most, len(self.running))
        if began.worker not in self.waits or began.attempt > 1:
            await self._report(pipeline, began, "over")
        else:
            self.is_waiting.set()
        return ""

    @activity.defn
    async def stop_worker(self, pipeline: str, agent: str) -> None:
        self.stopped.append(agent)
        began = next(began for began in reversed(self.begun) if began.agent == agent)
        await self._report(pipeline, began, "stopped")

    @activity.defn
    async def check_worker(self, _pipeline: str, began: WorkerBegan) -> WorkerEnded:
        self.running.discard(began.agent)
        is_stopped = began.agent in self.stopped and began.attempt == 1
        has_failed = began.attempt <= self.fails.get(began.worker, 0)
        return WorkerEnded(
            ts=clock.read_clock(),
            step=began.step,
            worker=began.worker,
            attempt=began.attempt,
            outcome="stopped" if is_stopped else "failed" if has_failed else "done",
            commit=f"{began.agent}/{began.attempt}",
        )

    @activity.defn
    async def find_items(self, _pipeline: str, move: moves.FindItems) -> ItemsFound:
        return ItemsFound(ts=clock.read_clock(), step=move.step, workers=("a", "b", "c"))

    @activity.defn
    async def merge_commits(self, _pipeline: str, move: moves.MergeCommits) -> StepMerged:
        if self.refusal:
            raise ApplicationError(self.refusal)
        self.merged.append(move)
        first, *others = [commit for _, commit in move.parts]
        commit = f"{move.step}-merged" if others else first
        conflicts = ("c",) if others and self.looks_until is not None else ()
        return StepMerged(
            ts=clock.read_clock(),
            step=move.step,
            stage=move.stage,
            commit=commit,
            conflicts=conflicts,
        )

    @activity.defn
    async def ask_person(self, _pipeline: str, move: moves.AskPerson) -> None:
        self.asked.append(move.step)

    @activity.defn
    async def find_merge(self, _pipeline: str, step: str, stage: MergeStage) -> StepMerged | None:
        self.looks.append(time.monotonic())
        if len(self.looks) <= (self.looks_until or 0):
            return None
        return StepMerged(
            ts=clock.read_clock(), step=step, stage=stage, commit="by-hand", merged=("c",)
        )

    @activity.defn
    async def end_run(self, _pipeline: str, move: moves.EndPipeline) -> None:
        del move

    async def _report(self, pipeline: str, began: WorkerBegan, state: str) -> None:
        report = WorkerReport(agent=began.agent, attempt=began.attempt, state=state)
        handle = self.client.get_workflow_handle(pipeline)
        await handle.signal("worker_reported", report)
        # An agent may report the same state again, such as after its history was carried over.
        await handle.signal("worker_reported", report)


def make_record(pool: str, log=(), **more) -> RegisteredPipeline:
    plan = RunPlan(pipeline="p", steps=STEPS)
    steps = [PipelineStep(id=step.id) for step in STEPS]
    definition = RunDefinition(
        pipeline="p", run=1, base="base", definition=Pipeline(steps=steps), plan=plan
    )
    started = PipelineStarted(ts=clock.read_clock(), pipeline="p", run=1, base="base")
    return RegisteredPipeline(
        definition=definition,
        agent=AgentDefinition(manifest="version: 1\n", pool=pool, heartbeat_seconds=10),
        lines=tuple(events.render(event).decode() for event in (started, *log)),
        **more,
    )


def run_pipeline(engine, pool: str, play, **more) -> None:
    """Start a run with scripted hosts, and play with it."""

    async def start() -> None:
        client = await Client.connect(engine.address, data_converter=make_data_converter(()))
        hosts = ScriptedHosts(client, pool)
        async with hosts.working():
            handle = await client.start_workflow(
                PipelineWorkflow.run,
                make_record(pool, **more),
                id=make_pipeline_id("default", pool, 1),
                task_queue=DECISION_QUEUE,
                execution_timeout=timedelta(seconds=60),
            )
            await play(handle, hosts)

    asyncio.run(asyncio.wait_for(start(), 90))


async def await_event(handle, wanted: type) -> None:
    async with asyncio.timeout(60):
        while not any(  # noqa: ASYNC110 - of another program
            isinstance(event, wanted)
            for event in (await handle.query(PipelineWorkflow.kept)).read_events()
        ):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("most_events", [1000, 30])
def test_a_run_begins_every_attempt_once_and_ends_as_on_one_host(engine, most_events):
    """A short limit carries the history over several times."""

    async def play(handle, hosts: ScriptedHosts) -> None:
        assert await handle.result() == "done"
        described = await handle.describe()
        assert (described.run_id != handle.first_execution_run_id) == (most_events < 100)
        record = await handle.query(PipelineWorkflow.kept)
        state = fold(record.read_events())
        assert (state.ended, state.commit) == ("done", "p-1-test/1")
        attempts = Counter((began.agent, began.attempt) for began in hosts.begun)
        assert attempts == Counter(
            {
                ("p-1-plan", 1): 1,
                ("p-1-build-a", 1): 1,
                ("p-1-build-b", 1): 1,
                ("p-1-build-b", 2): 1,
                ("p-1-build-c", 1): 1,
                ("p-1-test", 1): 1,
            }
        )
        assert hosts.most <= 2
        merges = {move.step: [commit for _, commit in move.parts] for move in hosts.merged}
        assert merges["build"] == ["p-1-build-a/1", "p-1-build-b/2", "p-1-build-c/1"]
        assert next(began.commit for began in hosts.begun if began.step == "test") == "build-merged"

    run_pipeline(engine, f"whole-{most_events}", play, most_events=most_events)


def test_a_history_is_replayed_to_the_same_state(engine):
    async def play(handle, _hosts: ScriptedHosts) -> None:
        await handle.result()
        history = await handle.fetch_history()
        replayer = Replayer(workflows=[PipelineWorkflow], data_converter=make_data_converter(()))
        await replayer.replay_workflow(history)

    run_pipeline(engine, "replayed", play)


def test_a_stopped_run_is_resumed_and_no_attempt_begins_twice(engine):
    async def play(handle, hosts: ScriptedHosts) -> None:
        hosts.waits = {"a"}
        await hosts.is_waiting.wait()
        await say(handle, PipelineStopped(ts=clock.read_clock()))
        await await_event(handle, PipelineEnded)
        assert hosts.stopped.count("p-1-build-a") == 1
        await say(handle, PipelineResumed(ts=clock.read_clock()))
        assert await handle.result() == "done"
        attempts = Counter((began.agent, began.attempt) for began in hosts.begun)
        assert set(attempts.values()) == {1}
        assert attempts["p-1-build-a", 2] == 1

    run_pipeline(engine, "stopped", play)


def test_a_stopped_worker_is_resumed_after_its_history_was_carried_over(engine):
    """The run was stopped, resumed and carried over before the worker reported that it stopped."""
    now, agent = clock.read_clock(), "p-1-plan"
    log = (
        WorkerBegan(ts=now, step="plan", attempt=1, agent=agent, commit="base"),
        PipelineStopped(ts=now),
        PipelineResumed(ts=now + timedelta(seconds=1)),
    )
    report = WorkerReport(agent=agent, attempt=1, state="stopped")

    async def play(handle, hosts: ScriptedHosts) -> None:
        assert await handle.result() == "done"
        assert agent not in {began.agent for began in hosts.begun}, "its result is only checked"

    begun = ((agent, 1),)
    run_pipeline(engine, "carried", play, log=log, begun=begun, reports={agent: report})


def test_a_stopped_run_does_not_look_for_a_persons_merge(engine):
    async def play(handle, hosts: ScriptedHosts) -> None:
        hosts.looks_until = 1000
        await await_event(handle, PersonAsked)
        await say(handle, PipelineStopped(ts=clock.read_clock()))
        await await_event(handle, PipelineEnded)
        history = [event async for event in handle.fetch_history_events()]
        kinds = Counter(event.event_type for event in history)
        ends = kinds[EventType.EVENT_TYPE_TIMER_FIRED] + kinds[EventType.EVENT_TYPE_TIMER_CANCELED]
        assert kinds[EventType.EVENT_TYPE_TIMER_STARTED] == ends > 0
        await handle.terminate()

    run_pipeline(engine, "unwatched", play)


def test_a_task_that_fails_is_shown_until_it_succeeds(engine, monkeypatch):
    monkeypatch.setattr("rekindle.fleet.engine.pipeline_client.FLEET_PIPELINE_FAILURES", 1)

    async def play(handle, hosts: ScriptedHosts) -> None:
        hosts.refusal = "the remote is full"
        client = PipelineClient(hosts.client)
        async with asyncio.timeout(60):
            while not (shown := await client.find_failure("failing", 1)):  # noqa: ASYNC110 - of another program
                await asyncio.sleep(0.05)
        assert shown == hosts.refusal
        hosts.refusal = ""
        assert await handle.result() == "done"
        assert await client.find_failure("failing", 1) == ""

    run_pipeline(engine, "failing", play)


def test_a_person_is_asked_once_and_the_merge_is_found(engine, monkeypatch):
    monkeypatch.setattr(
        "rekindle.policy.settings.runtime_settings.FLEET_MERGE_POLL_SECONDS", POLL_SECONDS
    )

    async def play(handle, hosts: ScriptedHosts) -> None:
        hosts.looks_until = 2
        assert await handle.result() == "done"
        assert hosts.asked == ["build"]
        assert len(hosts.looks) == 3
        assert all(late - early > POLL_SECONDS / 2 for early, late in pairwise(hosts.looks))
        assert next(began.commit for began in hosts.begun if began.step == "test") == "by-hand"

    run_pipeline(engine, "conflicts", play)


def test_a_command_that_is_not_the_operators_is_refused(engine):
    async def play(handle, _hosts: ScriptedHosts) -> None:
        ended = PipelineEnded(ts=clock.read_clock(), outcome="done", commit="forged")
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await say(handle, ended)
        assert "only stop and resume" in str(refused.value.cause)
        with contextlib.suppress(WorkflowFailureError):
            await handle.result()

    run_pipeline(engine, "forged", play)


async def say(handle, event: msgspec.Struct) -> None:
    await handle.execute_update(PipelineWorkflow.say, events.render(event).decode())
