"""A coordinator that replaces a killed one behaves like the killed one."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.manifest import AgentEntry
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.documents.pipelines.pipeline_events import (
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    WorkerBegan,
    WorkerEnded,
)
from rekindle.errors import UnacceptedError
from rekindle.flows.pipelines.coordinator import Coordinator
from rekindle.flows.pipelines.coordinator_ports import CoordinatorPorts, WorkerView
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.policy.pipelines.run_definition import RunDefinition, WorkerRecord
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.pipelines.run_folder import create_run

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = RunPlan(pipeline="ship", steps=(StepPlan(id="all"),))
STOPPED = [PipelineStopped(ts=NOW), PipelineResumed(ts=NOW + timedelta(seconds=1))]


def refuse(*_):
    raise AssertionError("not expected")


class Run:
    """A run whose first attempt was stopped when a new coordinator starts."""

    def __init__(self, path, *commands):
        definition = RunDefinition(
            pipeline="ship", base="c0", definition=Pipeline(steps=[]), plan=PLAN
        )
        started = PipelineStarted(ts=NOW, pipeline="ship", run=0, base="c0")
        self.folder = create_run(find_private_project(path), definition, started)
        began = WorkerBegan(ts=NOW, step="all", attempt=1, agent="ship-1-all", commit="c0")
        for event in (began, *commands):
            self.folder.append(event)
        record = WorkerRecord(
            step="all", entry=AgentEntry(harness="command"), seq=0, attempt=1, commit="c0"
        )
        self.folder.write_workers({"ship-1-all": record})
        self.is_interrupted, self.is_unaccepted = False, False
        self.told = []

    @property
    def worker(self):
        return fold(self.folder.read_events()).find_worker("all", "")

    def rest(self, _seconds):
        self.is_interrupted = True

    def check(self, _worker_id, worker, view):
        return WorkerEnded(ts=NOW, step="all", attempt=worker.attempt, outcome=view.end)

    def ensure(self, _state, began):
        if self.is_unaccepted:
            raise UnacceptedError(began.agent, "changed", "accept it")
        return ""

    def coordinate(self):
        """Coordinate until the run waits."""
        ports = CoordinatorPorts(
            folder=self.folder,
            clock=lambda: NOW,
            rest=self.rest,
            is_interrupted=lambda: self.is_interrupted,
            ensure_worker=self.ensure,
            read_worker=lambda worker: WorkerView(end="stopped" if worker.attempt == 1 else ""),
            stop_worker=lambda worker: self.told.append(worker.agent),
            check_worker=self.check,
            find_items=refuse,
            merge=refuse,
            ask_person=refuse,
            find_merged=refuse,
            end=lambda *_: None,
            note=lambda _: None,
            watch_workers=lambda _: None,
        )
        Coordinator(PLAN, ports).run()


@pytest.mark.parametrize(("commands", "attempt"), [(STOPPED, 2), ([], 1)])
def test_a_worker_that_was_stopped_with_its_run_continues_with_it(tmp_path, commands, attempt):
    """A worker that a person stopped alone waits for that person."""
    run = Run(tmp_path, *commands)
    run.coordinate()
    assert (run.worker.status, run.worker.attempt) == ("running", attempt)
    assert run.told == []


@pytest.mark.parametrize("is_created", [True, False])
def test_a_run_stops_although_a_worker_could_not_be_started(tmp_path, is_created):
    """The worker waits for the operator to accept a changed rekindle.yaml."""
    run = Run(tmp_path, STOPPED[0])
    records = {
        "ship-1-all": msgspec.structs.replace(run.folder.read_workers()["ship-1-all"], seq=None)
    }
    run.folder.write_workers(records if is_created else {})
    run.is_unaccepted = True
    run.coordinate()
    assert run.worker.status == "stopped"
    assert fold(run.folder.read_events()).ended == "stopped"


def test_an_attempt_that_was_not_started_stops_although_an_earlier_one_was(tmp_path):
    ended = WorkerEnded(ts=NOW, step="all", attempt=1, outcome="failed", commit="c0")
    began = WorkerBegan(ts=NOW, step="all", attempt=2, agent="ship-1-all", commit="c0")
    run = Run(tmp_path, ended, began, STOPPED[0])
    run.is_unaccepted = True
    run.coordinate()
    assert (run.worker.status, run.worker.attempt) == ("stopped", 2)


def test_a_worker_that_was_started_is_not_given_up(tmp_path):
    run = Run(tmp_path, STOPPED[0])
    run.is_unaccepted = True
    run.coordinate()
    assert run.worker.status == "running"
    assert run.told == ["ship-1-all"]
