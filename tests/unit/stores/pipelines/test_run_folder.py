"""A run's folder: it appears at once, its log loses nothing, and commands count once."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle import config
from rekindle.documents.manifest import AgentEntry
from rekindle.documents.pipelines.pipeline_events import (
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
)
from rekindle.errors import DocumentError
from rekindle.policy.pipelines.run_definition import RunDefinition, WorkerRecord
from rekindle.policy.pipelines.run_plan import make_plan
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.pipelines.run_folder import RunFolder, create_run, list_runs

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
TEXT = """\
version: 1
agents: {trades: {harness: command, command: cat}}
pipelines: {ship: {steps: [{id: plan, prompt: Plan.}]}, test: {steps: [{id: all, run: just}]}}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(TEXT)
    return config.load_project(tmp_path)


@pytest.fixture
def private(project):
    return find_private_project(project.path)


def make_definition(project, name="ship"):
    return RunDefinition(
        pipeline=name,
        base="c0ffee",
        definition=project.manifest.pipelines[name],
        plan=make_plan(project.manifest, project.marked, name),
    )


def start(project, private, name="ship"):
    started = PipelineStarted(ts=NOW, pipeline=name, run=0, base="c0ffee")
    return create_run(private, make_definition(project, name), started)


def test_a_run_is_open_until_it_ends_and_after_it_is_resumed(project, private):
    run = start(project, private)
    assert run.is_open()
    run.append(PipelineEnded(ts=NOW, outcome="stopped"))
    assert not run.is_open()
    run.append(PipelineStopped(ts=NOW))
    assert not run.is_open(), "a command after the end"
    run.submit(PipelineResumed(ts=NOW + timedelta(seconds=1)))
    assert run.is_open()
    run.append(*run.take_commands())
    assert run.is_open()


def test_only_the_end_of_a_run_that_is_over_is_read(project, private):
    run = start(project, private)
    run.log.write_bytes(b"damaged\n")
    run.append(PipelineEnded(ts=NOW, outcome="done"))
    assert not run.is_open()


def test_a_new_run_has_its_definition_and_first_event(project, private):
    run = start(project, private)
    assert (run.pipeline, run.run) == ("ship", 1)
    assert run.read_definition().run == 1
    assert run.read_definition().plan == make_definition(project).plan
    assert [(event.kind, event.run) for event in run.read_events()] == [("pipeline.started", 1)]
    assert run.outputs.is_dir()
    assert not run.is_coordinated()


def test_runs_are_numbered_for_each_pipeline_and_listed_in_order(project, private):
    for _ in range(11):
        start(project, private)
    start(project, private, "test")
    assert [run.run for run in list_runs(private, "ship")] == list(range(1, 12))
    assert [(run.pipeline, run.run) for run in list_runs(private)][-1] == ("test", 1)
    assert list_runs(private, "other") == []


def test_a_number_is_not_used_again_after_its_run_was_removed(project, private):
    start(project, private).remove()
    assert list_runs(private) == []
    assert start(project, private).run == 2


def test_a_half_created_run_does_not_count(project, private):
    run = start(project, private)
    (run.path.parent / ".new-1234").mkdir()
    assert list_runs(private) == [run]


def test_a_torn_line_is_ignored_and_later_events_count(project, private):
    run = start(project, private)
    with run.log.open("ab") as log:
        log.write(b'{"kind": "pipeline.en')
    assert len(run.read_events()) == 1
    run.append(PipelineEnded(ts=NOW, outcome="done", commit="c1"))
    assert [event.kind for event in run.read_events()] == ["pipeline.started", "pipeline.ended"]


def test_only_one_process_coordinates_a_run(project, private):
    run = start(project, private)
    with run.hold() as lock:
        assert lock is not None
        assert run.is_coordinated()
        with run.hold() as second:
            assert second is None
    assert not run.is_coordinated()


def test_commands_are_taken_in_order_and_once(project, private):
    run = start(project, private)
    run.submit(PipelineResumed(ts=NOW + timedelta(seconds=1)))
    run.submit(PipelineStopped(ts=NOW))
    assert [event.kind for event in run.read_commands()] == [
        "pipeline.stopped",
        "pipeline.resumed",
    ]
    assert [event.kind for event in run.take_commands()] == [
        "pipeline.stopped",
        "pipeline.resumed",
    ]
    assert run.read_commands() == []


def test_a_command_stays_until_it_was_used(project, private):
    run = start(project, private)
    run.submit(PipelineStopped(ts=NOW))
    next(run.take_commands())  # killed before the event is in the log
    assert len(run.read_commands()) == 1


def write_worker(run, name):
    entry = AgentEntry(harness="command", command=["cat"], cycles=1)
    run.write_workers({name: WorkerRecord(step="plan", attempt=1, entry=entry, commit="c0ffee")})


def test_workers_join_the_agents_but_are_not_declared(project, private):
    run = start(project, private)
    assert run.read_workers() == {}
    write_worker(run, "ship-1-plan")
    project = config.load_project(project.path)
    assert project.require_agent("ship-1-plan") == "ship-1-plan"
    assert project.manifest.agents["ship-1-plan"].cycles == 1
    assert project.declared_agents == ["trades"]


def test_a_worker_never_replaces_a_declared_agent(project, private):
    write_worker(start(project, private), "trades")
    project = config.load_project(project.path)
    assert project.manifest.agents["trades"].cycles is None
    assert project.declared_agents == ["trades"]


def test_a_damaged_list_of_workers_does_not_stop_other_commands(project, private):
    run = start(project, private)
    (run.path / "workers.json").write_text("{")
    assert config.load_project(project.path).workers == {}
    with pytest.raises(DocumentError, match=r"workers\.json"):
        run.read_workers()


def test_a_missing_definition_is_an_error_with_its_name(tmp_path):
    with pytest.raises(DocumentError, match=r"definition\.json"):
        RunFolder(tmp_path / "ship" / "1", tmp_path / "outputs").read_definition()
