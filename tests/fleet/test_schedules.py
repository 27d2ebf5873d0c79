"""Schedules on a fleet: the real engine makes the due times happen, by filling them in."""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from temporalio import activity
from temporalio.client import Client, ScheduleBackfill, ScheduleOverlapPolicy
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from fleet.deciding import deciding
from fleet.engine import Engine
from fleet.pipeline_project import git, make_pipeline_project
from fleet.working import Place, worker
from rekindle import config
from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.documents.pipelines.pipeline_events import PipelineStarted
from rekindle.fleet.engine import run_schedules
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.engine.encryption_keys import generate_key
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.fleet.hosts.worker import WORKFLOWS
from rekindle.fleet.pipelines.pipeline_tasks import make_pipeline_queue
from rekindle.fleet.schedules import schedule_activities
from rekindle.fleet.schedules.schedule_activities import ScheduleActivities
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.fleet.scheduled_run import DueResult, ScheduledOrder
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.schedules.decide_run import STILL_RUNNING
from rekindle.system import clock

pytestmark = pytest.mark.timeout(400)
PATIENCE_SECONDS = 120
HOUR = timedelta(hours=1)
FIRST = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + 24 * HOUR

Cli = Callable[..., str]


@pytest.fixture
def rekindle(capsys) -> Cli:
    def call(*words: str) -> str:
        code = run(list(words))
        said = capsys.readouterr()
        assert code == 0, said.out + said.err
        return said.out

    return call


@pytest.fixture
def place(tmp_path, monkeypatch, request) -> Place:
    found = Place(tmp_path, request.node.name[5:35].replace("_", "-"))
    monkeypatch.chdir(found.project)
    monkeypatch.setattr("os.environ", os.environ | {"NO_COLOR": "1", "TZ": "UTC"})
    return found


def say(place: Place, engine: Engine, every: str) -> None:
    """Write a manifest in which the agent has a schedule, and accept it on this host."""
    fleet = f"fleet: {{address: '{engine.address}', pool: {place.agent}, heartbeat_timeout: 10s}}"
    place.say(fleet)
    path = place.project / "rekindle.yaml"
    path.write_text(path.read_text().replace("    cycles: 2\n", f"    cycles: 1\n{every}"))


async def connect_to(project: Path) -> Client:
    fleet = config.load_project(project).settings.fleet
    assert fleet is not None
    return await connect(fleet, project, os.environ)


async def read_agent(place: Place) -> RegisteredAgent:
    return await AgentClient(await connect_to(place.project)).kept(place.agent)


async def fill_in(client: Client, kind: str, name: str, due: datetime) -> None:
    """Make a due time happen now, after those that were filled in before."""
    handle = client.get_schedule_handle(run_schedules.make_schedule_id(client, kind, name))
    start, end = due - timedelta(seconds=30), due + timedelta(seconds=30)
    overlap = ScheduleOverlapPolicy.BUFFER_ALL
    await handle.backfill(ScheduleBackfill(start_at=start, end_at=end, overlap=overlap))


def make_due(project: Path, kind: str, name: str, due: datetime) -> None:
    async def fill() -> None:
        await fill_in(await connect_to(project), kind, name, due)

    asyncio.run(fill())


def await_row(rekindle: Cli, name: str, holds: Callable[[dict[str, Any]], object]) -> dict:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        [row] = json.loads(rekindle("schedules", name, "--json"))["schedules"]
        if holds(row):
            return row
        assert time.monotonic() < deadline, row
        time.sleep(0.2)


def list_outcomes(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(outcome["kind"], outcome["reason"]) for outcome in row["history"]]


def await_outcomes(rekindle: Cli, name: str, *kinds: str) -> list[tuple[str, str]]:
    row = await_row(rekindle, name, lambda row: len(row["history"]) >= len(kinds))
    assert [kind for kind, _ in list_outcomes(row)] == [*kinds]
    return list_outcomes(row)


def await_end(rekindle: Cli, name: str, cycle: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        [row] = json.loads(rekindle("status", name, "--json"))["agents"]
        # A busy host may answer too late, and then the row has no details.
        if row["cycle"] == cycle and row.get("run") and row["run"]["ended"]:
            return
        assert time.monotonic() < deadline, row
        time.sleep(0.2)


def test_agent_schedule_on_a_host(place, own_engine, rekindle):
    """Each due time starts one run; overlaps, changes and a removal take effect."""
    name = place.agent
    say(place, own_engine, "    every: 1h\n")
    assert f"{name}  (agent): 1h; not in effect" in rekindle("schedules")
    with worker(place.project, place.project.parent / "root", "a"):
        accepted = rekindle("schedules", "--accept")
        assert f"{name}  (agent): 1h; next run" in accepted
        assert "!" not in accepted
        assert asyncio.run(read_agent(place)).projection.run.command is None

        make_due(place.project, "agents", name, FIRST)
        await_outcomes(rekindle, name, "started")
        await_end(rekindle, name, 1)
        make_due(place.project, "agents", name, FIRST)
        place.hold.touch()
        make_due(place.project, "agents", name, FIRST + HOUR)
        await_outcomes(rekindle, name, "started", "started")
        make_due(place.project, "agents", name, FIRST + 3 * HOUR)
        kinds = ("started", "started", "missed", "skipped")
        outcomes = await_outcomes(rekindle, name, *kinds)
        assert outcomes[-1] == ("skipped", STILL_RUNNING)

        say(place, own_engine, "    every: {interval: 2h, overlap: queue}\n")
        assert "is not accepted yet" in rekindle("schedules")
        assert f"{name}  (agent): 2h; next run" in rekindle("schedules", "--accept")
        later = FIRST.replace(hour=0) + 48 * HOUR
        make_due(place.project, "agents", name, later)
        assert await_row(rekindle, name, lambda row: row["waiting"])["every"] == "2h"
        place.hold.unlink()
        await_outcomes(rekindle, name, *kinds, "started")
        await_end(rekindle, name, 3)

        place.hold.touch()
        make_due(place.project, "agents", name, later + 2 * HOUR)
        await_outcomes(rekindle, name, *kinds, "started", "started")
        make_due(place.project, "agents", name, later + 4 * HOUR)
        await_row(rekindle, name, lambda row: row["waiting"])
        say(place, own_engine, "")
        assert "There are no schedules." in rekindle("schedules", "--accept")
        place.hold.unlink()
        await_end(rekindle, name, 4)
        scheduled = asyncio.run(read_agent(place)).projection.run.scheduled
        assert scheduled is not None
        assert scheduled.due == later + 2 * HOUR


class LosingActivities(ScheduleActivities):
    """A host that dies after it has done each task, and before the engine learns of it."""

    @activity.defn(name="start_due")
    async def start_due(self, workflow: str, order: ScheduledOrder, due: datetime) -> DueResult:
        result = await super().start_due(workflow, order, due)
        self.order = order
        if activity.info().attempt == 1:
            raise RuntimeError("the host is gone")
        return result


@contextlib.asynccontextmanager
async def losing_host(client: Client, pool: str, root: Path) -> AsyncIterator[LosingActivities]:
    own = LosingActivities(client, root, "a", asyncio.Lock())
    schedules = Worker(
        client,
        task_queue=make_pipeline_queue(pool),
        activities=[own.start_due, own.report_outcomes],
    )
    async with schedules, deciding(client, *WORKFLOWS):
        yield own


async def await_history(client: Client, kind: str, name: str, count: int) -> list[str]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            schedule = await run_schedules.read_schedule(client, kind, name)
            assert schedule is not None
            if len(schedule.history) >= count:
                return [outcome.kind for outcome in schedule.history]
            await asyncio.sleep(0.1)


async def await_run(runs: PipelineClient, pipeline: str) -> None:
    """Wait until the engine's list contains the run."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await runs.find_open(pipeline):
                return
            await asyncio.sleep(0.1)


class RecordingNotifier:
    """Remembers the titles of notifications instead of sending them."""

    titles: ClassVar[list[str]] = []

    def __init__(self, addresses: Sequence[str], redaction: Redaction) -> None:
        assert addresses == ["$ALERTS"]
        del redaction

    def send(self, title: str, body: str, severity: str) -> list[str]:
        assert "rekindle schedules" in body
        assert severity
        self.titles.append(title)
        return []


def test_an_agent_starts_once_if_a_host_is_lost(place, own_engine, rekindle, monkeypatch):
    """A run that is too late for `missed: skip` does not start, and the operator is told."""
    name = place.agent
    monkeypatch.setattr(schedule_activities, "make_host_notifier", RecordingNotifier)
    say(place, own_engine, "    every: {interval: 1h, missed: skip}\n")
    with (place.project / "rekindle.yaml").open("a") as file:
        file.write("notify: [$ALERTS]\n")

    async def play() -> list[str]:
        client = await connect_to(place.project)
        async with losing_host(client, name, place.project.parent / "root"):
            await fill_in(client, "agents", name, FIRST - timedelta(days=2))
            assert await await_history(client, "agents", name, 1) == ["missed"]
            await fill_in(client, "agents", name, FIRST)
            kinds = await await_history(client, "agents", name, 3)
            assert kinds == ["missed", "missed", "started"]
            await fill_in(client, "agents", name, FIRST + HOUR)
            assert (await await_history(client, "agents", name, 4))[-1] == "skipped"
            stop = events.DesiredSet(ts=clock.read_clock(), desired="stopped")
            await AgentClient(client).say(name, stop)
            await fill_in(client, "agents", name, FIRST + 2 * HOUR)
            await await_history(client, "agents", name, 5)
            schedule = await run_schedules.read_schedule(client, "agents", name)
            assert schedule is not None
            assert schedule.history[-1].reason.startswith("you stopped the agent")
            agent = await read_agent(place)
            return [line for line in agent.tail if "desired" in line and '"due"' in line]

    rekindle("schedules", "--accept")
    [line] = asyncio.run(play())
    event = events.parse(line.encode())
    assert isinstance(event, events.DesiredSet)
    assert event.due == FIRST
    titles = ["runs missed", "runs missed", "run skipped", "run skipped"]
    assert RecordingNotifier.titles == [f"{name}: {title}" for title in titles]


def test_a_pipeline_starts_once_if_a_host_is_lost(own_engine, tmp_path, monkeypatch, rekindle):
    """The engine is killed before the start. The number that a lost host reserved is not used."""
    monkeypatch.setenv("SCHEDULE_KEY", generate_key())
    fleet = {"address": own_engine.address, "pool": "p", "heartbeat_timeout": "10s"}
    fleet["codec"] = {"keys": ["$SCHEDULE_KEY"]}
    project = make_pipeline_project(tmp_path, fleet, items=1)
    path = project / "rekindle.yaml"
    manifest = json.loads(path.read_text())
    manifest["pipelines"]["ship"]["every"] = "1h"
    path.write_text(json.dumps(manifest))
    monkeypatch.chdir(project)
    assert "ship  (pipeline): 1h; next run" in rekindle("schedules", "--accept")
    (project / "later.txt").write_text("later\n")
    git("add", "later.txt", cwd=project)
    git("commit", "-qm", "later", cwd=project)
    git("push", "-q", "origin", "HEAD:main", cwd=project)

    async def play() -> list[Any]:
        client = await connect_to(project)
        runs = PipelineClient(client)
        await fill_in(client, "pipelines", "ship", FIRST)
        own_engine.restart()
        async with losing_host(client, "p", tmp_path / "root") as host:
            assert await await_history(client, "pipelines", "ship", 1) == ["started"]
            await await_run(runs, "ship")
            # The engine can repeat a due time after a restart; the run is the same.
            again = ScheduleActivities(client, tmp_path / "root", "a", asyncio.Lock())
            environment = ActivityEnvironment()
            environment.info = replace(environment.info, heartbeat_timeout=timedelta(seconds=10))
            repeated = await environment.run(again.start_due, "ship", host.order, FIRST)
            assert repeated == DueResult()
            await fill_in(client, "pipelines", "ship", FIRST + HOUR)
            kinds = await await_history(client, "pipelines", "ship", 2)
            assert kinds == ["started", "skipped"]
            return [await runs.kept(*place) async for place in runs.list_runs()]

    [registered] = asyncio.run(play())
    [started] = registered.read_events()[:1]
    assert isinstance(started, PipelineStarted)
    assert (started.run, started.due) == (2, FIRST)
    assert started.base == git("rev-parse", "HEAD", cwd=project).strip()
    manifest["pipelines"]["ship"]["base"] = "missing"
    path.write_text(json.dumps(manifest))
    assert run(["schedules", "--accept"]) != 0
    del manifest["pipelines"]["ship"]["base"], manifest["pipelines"]["ship"]["every"]
    path.write_text(json.dumps(manifest))
    assert "There are no schedules." in rekindle("schedules", "--accept")
