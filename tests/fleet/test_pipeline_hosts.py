"""Pipelines on real hosts, which share only the engine and a git remote."""

import asyncio
import contextlib
import io
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sampling
from fleet.pipeline_project import git, make_pipeline_project
from fleet.working import worker
from rekindle import config
from rekindle.cli import main
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.errors import OwnershipError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.fleet.hosts.unused_folders import remove_unused_folders
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline

ITEMS = 64 if sampling.WHOLE else 9
RUN_SECONDS = 900 if sampling.WHOLE else 200
pytestmark = pytest.mark.timeout(RUN_SECONDS + 80)


def rekindle(project: Path, *words: str) -> str:
    """Run a command of the operator, and return its output."""
    output = io.StringIO()
    with contextlib.chdir(project), contextlib.redirect_stdout(output):
        code = main.run(["pipeline", *words])
    assert code == 0, (words, output.getvalue())
    return output.getvalue()


def read_run(folder: Path, number: int) -> RegisteredPipeline:
    fleet = config.load_project(folder).settings.fleet
    assert fleet is not None

    async def read() -> RegisteredPipeline:
        return await PipelineClient(await connect(fleet, folder, {})).kept("ship", number)

    return asyncio.run(read())


def await_sessions(folder: Path, host: str, number: int) -> list[str]:
    """Wait until a host runs some workers of the matrix, and return their names."""
    fleet = config.load_project(folder).settings.fleet
    assert fleet is not None

    async def follow() -> list[str]:
        agents = AgentClient(await connect(fleet, folder, {}))
        while True:
            listed = [agent async for agent in agents.listed()]
            here = [
                agent.agent for agent in listed if (agent.host, agent.state) == (host, "running")
            ]
            names = [name for name in here if "-build-" in name]
            if len(names) >= number:
                return names
            await asyncio.sleep(0.2)

    return asyncio.run(asyncio.wait_for(follow(), 120))


def check_result(folder: Path, items: int) -> None:
    """Check that each item was done exactly once, on the run's branch of the remote."""
    remote = folder / "remote.git"
    names = [f"item{number:02}" for number in range(items)]
    files = git("ls-tree", "-r", "--name-only", "rekindle/ship/1", cwd=remote).split()
    assert files == [".gitignore", "all.txt", *(f"{name}.txt" for name in names)]
    assert git("show", "rekindle/ship/1:all.txt", cwd=remote).split() == names


def check_worker_cannot_be_removed(project: Path, agent: str) -> None:
    errors = io.StringIO()
    with contextlib.chdir(project), contextlib.redirect_stderr(errors):
        code = main.run(["fleet", "remove", agent])
    assert code == OwnershipError.exit_code
    assert "rekindle pipeline stop ship 1" in errors.getvalue()


def check_commands_for_results(project: Path) -> None:
    """Check that the commits of a run are fetched, shown and merged as on a single host."""
    shown = rekindle(project, "diff", "ship", "--step", "build", "--worker", "2")
    assert [line for line in shown.splitlines() if line.startswith("+++")] == ["+++ b/item01.txt"]
    assert "4 files changed" in rekindle(project, "diff", "ship", "--stat")
    assert "can be merged into main" in rekindle(project, "merge", "ship", "--check")
    assert not (project / "item00.txt").exists()
    # A person's commit on the branch of the remote is a part of the result.
    git("fetch", "-q", "origin", "rekindle/ship/1", cwd=project)
    fix = git("commit-tree", "-p", "FETCH_HEAD", "-m", "fix", "FETCH_HEAD^{tree}", cwd=project)
    git("push", "-q", "origin", f"{fix.strip()}:refs/heads/rekindle/ship/1", cwd=project)
    assert json.loads(rekindle(project, "merge", "ship", "--json"))["is_merged"]
    assert (project / "all.txt").read_text().split() == ["item00", "item01", "item02"]
    assert git("log", "-1", "--format=%s", "rekindle/ship/1", cwd=project).strip() == "fix"
    assert "Nothing to merge" in rekindle(project, "merge", "ship", "1")


def check_logs(output: str, items: int) -> None:
    """Check that each event has its place, and that the events of all workers are there."""
    lines = read_lines(output)
    assert {(line["pipeline"], line["run"]) for line in lines} == {("ship", 1)}
    ends = [(line["kind"], line.get("outcome")) for line in lines if line["agent"] is None]
    assert (ends[0][0], ends[-1]) == ("pipeline.started", ("pipeline.ended", "done"))
    places = {(line["step"], line["worker"]) for line in lines if line["kind"] == "run.ended"}
    built = {("build", str(number + 1)) for number in range(items)}
    assert places == {("plan", None), ("test", None), *built}
    assert {line["agent"] for line in lines if line["worker"] == "1"} == {"ship-1-build-1"}


def check_clean(project: Path, root: Path) -> None:
    """Check that the workers are removed first, and then everything except the result."""
    folders = sorted(path.name for path in root.glob("default~ship-1-*"))
    assert len(folders) == 5
    cleaned = json.loads(rekindle(project, "clean", "ship", "--json"))
    assert cleaned["workers"] == [name.removeprefix("default~") for name in folders]
    assert (cleaned["branches"], len(cleaned["kept_branches"])) == ([], 5)
    check_logs(rekindle(project, "logs", "ship", "--json", "-n", "0"), 3)
    (root / "default~helper").mkdir()
    assert remove_folders(project, root) == cleaned["workers"]
    assert not list(root.glob("*~ship-1-*"))
    assert (root / "default~helper").exists()
    cleaned = json.loads(rekindle(project, "clean", "ship", "--all", "--json"))
    assert (len(cleaned["branches"]), cleaned["kept_branches"]) == (5, [])
    refs = git("for-each-ref", "--format=%(refname)", cwd=project.parent / "remote.git").split()
    assert refs == [
        "refs/heads/main",
        "refs/heads/rekindle/ship/1",
        "refs/rekindle/pipelines/ship/1/_base",
    ]
    deadline = time.monotonic() + 120
    while "No pipeline has run yet" not in rekindle(project, "status"):
        assert time.monotonic() < deadline, "the engine still has the run"
        time.sleep(0.2)


def remove_folders(folder: Path, root: Path) -> list[str]:
    fleet = config.load_project(folder).settings.fleet
    assert fleet is not None

    async def remove() -> list[str]:
        agents = AgentClient(await connect(fleet, folder, {}))
        return await remove_unused_folders(agents, root, "one")

    return asyncio.run(remove())


def read_lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_a_run_on_a_host_is_started_stopped_and_resumed(own_engine, tmp_path):
    fleet = {"address": own_engine.address, "heartbeat_timeout": "10s"}
    project = make_pipeline_project(tmp_path, fleet, items=3, seconds=1)
    with worker(project, tmp_path / "root", "one"):
        started = rekindle(project, "run", "ship", "--trust", "--detach")
        assert "started ship 1 on the fleet" in started
        [running, *_] = await_sessions(project, "one", 1)
        check_worker_cannot_be_removed(project, running)
        assert "ship 1: stopped" in rekindle(project, "stop", "ship")
        rekindle(project, "resume", "ship")
        [row] = json.loads(rekindle(project, "status", "ship", "--json"))["runs"]
        assert (row["state"], row["run"]) == ("done", 1)
        assert rekindle(project, "status").startswith("ship 1")
        log = read_run(project, 1).read_events()
        assert not (project / "item00.txt").exists()
        check_commands_for_results(project)
        check_logs(rekindle(project, "logs", "ship", "--json", "-n", "0"), 3)
        own = read_lines(rekindle(project, "logs", "ship", "--worker", "2", "--json", "-n", "0"))
        assert {(line["step"], line["worker"]) for line in own} == {("build", "2")}
        check_clean(project, tmp_path / "root")
    check_result(tmp_path, 3)
    begun = Counter((event.agent, event.attempt) for event in log if isinstance(event, WorkerBegan))
    assert set(begun.values()) == {1}


@pytest.mark.torture
def test_a_host_dies_and_the_others_finish_the_run(own_engine, tmp_path):
    """Every item is done exactly once, and no attempt begins twice."""
    fleet = {"address": own_engine.address, "heartbeat_timeout": "5s"}
    project = make_pipeline_project(tmp_path, fleet, items=ITEMS, seconds=3)
    with contextlib.ExitStack() as stack:
        hosts = {
            name: stack.enter_context(worker(project, tmp_path / name, name))
            for name in ("one", "two", "three")
        }
        rekindle(project, "run", "ship", "--trust", "--detach")
        await_sessions(project, "two", 1)
        hosts["two"].kill()
        check_logs(rekindle(project, "logs", "ship", "--follow", "--json", "-n", "0"), ITEMS)
        log = read_run(project, 1).read_events()
    check_result(tmp_path, ITEMS)
    begun = Counter((event.agent, event.attempt) for event in log if isinstance(event, WorkerBegan))
    assert len(begun) == ITEMS + 2
    assert set(begun.values()) == {1}
    print(f"{ITEMS} workers on three hosts, one killed: done in {log[-1].ts - log[0].ts}")
