"""The check of a worker's result: the list that a later matrix step needs."""

from datetime import UTC, datetime

import pytest

import worktrees
from rekindle import config
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.flows.pipelines.coordinator_ports import WorkerView
from rekindle.policy.pipelines.pipeline_moves import FindItems
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.system.processes.child_processes import Interruption
from rekindle.wiring.access.trust_checks import forget_folder
from rekindle.wiring.agent_workspaces import find_workspace
from rekindle.wiring.pipelines import start_run, worker_start
from rekindle.wiring.pipelines.run_refs import find_repository
from rekindle.wiring.pipelines.worker_result import WorkerResults
from rekindle.wiring.pipelines.worker_start import WorkerStarter
from rekindle.wiring.pipelines.worker_tasks import WorkerTasks

MANIFEST = """\
version: 1
agents: {a: {harness: command, command: ["true"]}}
pipelines:
  ship:
    steps:
      - {id: plan, run: "true", outputs: {items: items.json, other: other.json}}
      - id: spare
        depends_on: [plan]
        prompt: Change it.
        optional: true
        strategy: {matrix: {from: plan.other}}
      - id: work
        depends_on: [plan]
        prompt: "Change {{ item.file }}."
        strategy: {matrix: {from: plan.items, key: id}}
"""


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Yield a function that checks the planner's result with a list of items."""
    monkeypatch.setenv("REKINDLE_TRUST", "1")
    monkeypatch.setattr(start_run, "start_coordinator", lambda *_: None)
    monkeypatch.setattr(worker_start.background_start, "start_supervisor", lambda *_: None)
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / ".gitignore").write_text(".rekindle\n")
    worktrees.git(tmp_path, "init", "-q", "-b", "main")
    worktrees.git(tmp_path, "add", "-A")
    worktrees.git(tmp_path, "commit", "-qm", "one")
    project = config.load_project(tmp_path)
    folder = start_run.start_run(project, "ship")
    definition, source = folder.read_definition(), find_repository(project)
    began = WorkerBegan(
        ts=datetime.now(UTC), step="plan", attempt=1, agent="ship-1-plan", commit=definition.base
    )
    state = fold([*folder.read_events(), began])
    assert WorkerStarter(project, folder, definition, source).ensure(state, began) == ""
    workspace = find_workspace(config.load_project(tmp_path), "ship-1-plan")
    workspace.open((), lambda: None, updates=False)
    work = workspace.folder

    def check(items):
        (work / "items.json").write_text(items)
        (work / "other.json").write_text("not a list")
        results = WorkerResults(project, folder, definition, source, Interruption())
        ended = results.check(("plan", ""), state.find_worker("plan", ""), WorkerView(end="done"))
        found = WorkerTasks(folder, definition, source).find_items(
            FindItems("work", definition.base)
        )
        return ended, found

    yield check
    workspace.remove()
    forget_folder(tmp_path)


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ("not JSON", "the list of items is not valid JSON"),
        ('[{"id": 1, "file": "a"}, {"id": 1, "file": "b"}]', "give each item a different id"),
        ('[{"id": 1}]', "file"),
    ],
)
def test_a_list_that_cannot_be_used_fails_the_worker_that_wrote_it(check, items, why):
    ended, found = check(items)
    assert ended.outcome == "failed"
    assert ended.why == f"its output items.json, for the step work: {found.why}"
    assert why in found.why


def test_a_usable_list_passes(check):
    ended, found = check('[{"id": 1, "file": "a"}]')
    assert (ended.outcome, ended.why) == ("done", "")
    assert found.workers == ("1",)
