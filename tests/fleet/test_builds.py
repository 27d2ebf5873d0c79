"""Builds with different workflows: agents move between them, and a stuck agent is found."""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from fleet.builds import INCOMPATIBLE, PATCHED, copy_build, decider
from fleet.engine import Engine
from fleet.pace import AGENT, PROGRAM, Project, begun
from rekindle.cli.main import run
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.commands import deploy_build
from rekindle.fleet.engine import deployments
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.wiring.access import trust_checks

pytestmark = pytest.mark.timeout(600)

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
AGENTS: Final = 30 if WHOLE else 5
"""Number of agents that work. CI runs a few, and `just torture` runs all."""
PATIENCE_SECONDS: Final = 400 if WHOLE else 180
WORK_SECONDS: Final = 10 if WHOLE else 1
"""Length of a session, so that most agents are in one when the build changes."""
STARTS: Final = {"run_cycle", "begin_cycle"}
"""Activities that begin a cycle."""
Histories = list[list[HistoryEvent]]
"""Events of each run of one agent."""


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await true():  # noqa: ASYNC110 - of another program
            await asyncio.sleep(0.2)


async def await_workers(client: Client, build: str) -> None:
    async def has_workers() -> bool:
        known = (await deployments.read_builds(client)).find(build)
        return known is not None and known.workers > 0

    await until(has_workers)


async def await_moved(agents: AgentClient, names: set[str], build: str) -> None:
    """Wait until each agent is on the build."""

    async def are_there() -> bool:
        found = {one.agent async for one in agents.listed() if one.build == build}
        return found == names

    await until(are_there)


async def read_runs(client: Client) -> dict[str, Histories]:
    """Return the events of all runs of all agents, by agent."""
    found: dict[str, Histories] = {}
    async for one in client.list_workflows('WorkflowType="Agent"'):
        handle = client.get_workflow_handle(one.id, run_id=one.run_id)
        events = [event async for event in handle.fetch_history_events()]
        found.setdefault(one.id, []).append(events)
    return found


def find_builds(events: list[HistoryEvent]) -> set[str]:
    return {
        event.workflow_task_completed_event_attributes.deployment_version.build_id
        for event in events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    }


def count_starts_after_news(events: list[HistoryEvent]) -> int:
    """Return how many cycles began after the workflow learned of another build."""
    news = [
        event.event_id
        for event in events
        if event.workflow_task_started_event_attributes.target_worker_deployment_version_changed
    ]
    return sum(
        event.activity_task_scheduled_event_attributes.activity_type.name in STARTS
        for event in events
        if news and event.event_id > news[0]
    )


def count_failures(runs: Histories) -> Counter[str]:
    """Return the failed tasks by cause, without those that the engine repeats because of news."""
    causes = Counter(
        WorkflowTaskFailedCause.Name(event.workflow_task_failed_event_attributes.cause)
        for events in runs
        for event in events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    )
    causes.pop("WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND", None)
    return causes


def is_told(events: list[HistoryEvent]) -> bool:
    """Return whether the run learned of another build."""
    return any(
        event.workflow_task_started_event_attributes.target_worker_deployment_version_changed
        for event in events
    )


async def await_cycles(fleet: AgentClient, names: set[str], count: int) -> None:
    """Wait until each agent has finished this many more cycles."""
    goals = {name: (await fleet.kept(name)).projection.cycle_ended + count for name in names}

    async def have_worked() -> bool:
        return all(
            [(await fleet.kept(name)).projection.cycle_ended >= goals[name] for name in names]
        )

    await until(have_worked)


async def go_there_and_back(project: Project, other: Path, names: set[str]) -> list[Histories]:
    """Upgrade and roll back agents that work, and one that is idle; return their histories."""
    client = await project.connect()
    fleet, everyone = AgentClient(client), names | {"idle"}
    for name in sorted(names):
        await begun(fleet, name, project.definition_of(name))
    await fleet.begin("idle", project.definition_of("idle"))
    await await_cycles(fleet, names, 1)
    await await_moved(fleet, everyone, "1")
    with decider(project.path, "2", other):
        await await_workers(client, "2")
        result = await deploy_build.deploy(client, "2")
        assert (result.before, result.after.current) == ("1", "2")
        assert result.woken >= 1
        await await_moved(fleet, everyone, "2")
        await await_cycles(fleet, names, 1)
        result = await deploy_build.roll_back(client)
        assert (result.before, result.after.current) == ("2", "1")
        await await_moved(fleet, everyone, "1")
        left = (await deployments.read_builds(client)).find("2")
        assert left is not None
        assert not left.has_work, "its workers may stop"
    await await_cycles(fleet, names, 1)
    histories = await read_runs(client)
    for name in everyone:
        await client.get_workflow_handle(fleet.workflow(name)).terminate()
    assert histories.keys() == {fleet.workflow(name) for name in everyone}
    return [*histories.values()]


@pytest.mark.torture
def test_agents_go_to_another_build_and_back(own_engine, tmp_path):
    """No task fails, and each agent moves at the end of its cycle; an idle one moves at once."""
    work = f"import time\nLINES = 20\ntime.sleep({WORK_SECONDS})\n{PROGRAM}"
    command = [sys.executable, "-I", "-S", "-c", work]
    project = Project(tmp_path / "project", own_engine.address, cycles=0, command=command)
    other = copy_build(tmp_path / "other", INCOMPATIBLE)
    names = {f"{AGENT}-{number}" for number in range(AGENTS)}
    with decider(project.path, "1"):
        worker = project.worker("a", AGENTS, "--no-decide")
        try:
            agents = asyncio.run(go_there_and_back(project, other, names))
        finally:
            worker.terminate()
            worker.wait(60)
    runs = [events for histories in agents for events in histories]
    late = [count_starts_after_news(events) for events in runs]
    print(
        f"\n{len(agents)} agents, {len(runs)} runs, {sum(map(is_told, runs))} of them left a build;"
        f" failed tasks {dict(count_failures(runs))}; cycles begun after the news {sum(late)}"
    )
    assert not count_failures(runs)
    assert max(late) <= 1, "one if the news came while the agent looked for a host"
    assert all(len(find_builds(events)) <= 1 for events in runs), "a run has one build"
    assert all({"1", "2"} == set().union(*map(find_builds, one)) for one in agents)
    assert_incompatible(next(events for events in runs if find_builds(events) == {"2"}))


def assert_incompatible(events: list[HistoryEvent]) -> None:
    """Check that a run of the other build would be stuck on this one."""
    replayer = Replayer(
        workflows=[AgentWorkflow],
        data_converter=make_data_converter(()),
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    history = WorkflowHistory("default/any", events)
    with pytest.raises(NondeterminismError):
        asyncio.run(replayer.replay_workflow(history))


@pytest.fixture
def strict_engine(tmp_path) -> Iterator[Engine]:
    """Start an engine that reports a problem after two failed tasks instead of five."""
    folder = tmp_path / "engine"
    folder.mkdir()
    name = "system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute"
    with Engine(folder, settings=[f"{name}=2"]) as started:
        yield started


def test_a_stuck_agent_is_named_and_moved(strict_engine, tmp_path, monkeypatch, capsys):
    """A build comes back without the change that another one made under the same name."""
    project = Project(tmp_path / "project", strict_engine.address)
    trust_checks.accept_folder(project.path)
    newer = copy_build(tmp_path / "newer", PATCHED)
    monkeypatch.chdir(project.path)
    monkeypatch.setattr("os.environ", os.environ | {"NO_COLOR": "1"})

    def call(*words: str) -> str:
        run([*words])
        said = capsys.readouterr()
        return said.out + said.err

    def row() -> dict:
        return json.loads(call("status", AGENT, "--json"))["agents"][0]

    def until_row(holds: Callable[[dict], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds(found := row()):
            assert time.monotonic() < deadline, found
            time.sleep(0.2)

    async def begin() -> None:
        client = await project.connect()
        await AgentClient(client).begin(AGENT, project.definition)
        assert (await AgentClient(client).kept(AGENT)).projection.cycle == 0

    async def disturb() -> None:
        client = await project.connect()
        await client.get_workflow_handle(AgentClient(client).workflow(AGENT)).signal("refresh")

    with decider(project.path, "1", newer):
        asyncio.run(begin())
    with decider(project.path, "1"):
        asyncio.run(disturb())
        until_row(lambda found: found["state"] == "broken")
        assert "stuck: build 1 fails to decide (NonDeterministicError)" in row()["reason"]
        assert "→ rekindle doctor" in call("status", AGENT)
        said = call("doctor")
        assert f"{AGENT} is stuck: build 1 fails to decide (NonDeterministicError)" in said
        assert "rekindle fleet deploy BUILD --move" in said
        assert "no worker runs build 9; builds with workers: 1" in call("fleet", "deploy", "9")
        with decider(project.path, "2", newer) as output:
            asyncio.run(wait_for_workers(project, "2"))
            assert "✓ build 2 decides for the fleet" in call("fleet", "deploy", "2", "--move")
            until_row(lambda found: found["state"] != "broken")
            assert row()["fleet"]["build"] == "2"
            assert "this worker's build 2 is not the fleet's current build 1" in output.read_text()
            assert "is stuck" not in call("doctor")


async def wait_for_workers(project: Project, build: str) -> None:
    await await_workers(await project.connect(), build)
