"""A run's result on its branch of the git remote."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import PipelineStarted
from rekindle.errors import WorkspaceError
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.fleet.pipelines.run_numbers import reserve_number
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.wiring.pipelines.run_refs import name_merge
from throwaway import Repository

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
BRANCH = "refs/heads/rekindle/ship/1"


@pytest.fixture
def commits(fleet):
    """Return commits on the remote, by message. `fix` follows `result`."""
    person = Repository(fleet.root / "person")
    made = {"main": person.git("rev-parse", "HEAD")}
    for message, parent in {"result": "main", "other": "main", "fix": "result"}.items():
        made[message] = person.git("commit-tree", "-p", made[parent], "-m", message, "HEAD^{tree}")
        person.git("push", "-q", fleet.url, f"{made[message]}:refs/kept/{message}")
    return made


@pytest.fixture
def run(fleet, commits):
    base = commits["main"]
    started = PipelineStarted(ts=NOW, pipeline="ship", run=1, base=base)
    registered = RegisteredPipeline(
        definition=RunDefinition(
            pipeline="ship",
            run=1,
            base=base,
            definition=Pipeline(steps=[PipelineStep(id="a")]),
            plan=RunPlan(pipeline="ship", steps=(StepPlan(id="a"),)),
        ),
        agent=AgentDefinition(
            manifest="version: 1\n", pool="p", heartbeat_seconds=5, remote=fleet.url
        ),
        lines=(events.render(started).decode(),),
    )
    made = HostRun(fleet.root / "one", "one", registered)
    made.fetch("refs/kept/*")
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "result"), ("main", "result"), ("result", "result"), ("fix", "fix")],
)
def test_a_result_is_added_to_its_branch_and_commits_of_persons_are_kept(
    fleet, commits, run, before, after
):
    if before:
        fleet.remote.git("update-ref", BRANCH, commits[before])
    run.push_result(commits["result"])
    assert fleet.remote.git("rev-parse", BRANCH) == commits[after]


def test_a_branch_with_other_commits_is_not_replaced(fleet, commits, run):
    fleet.remote.git("update-ref", BRANCH, commits["other"])
    with pytest.raises(WorkspaceError, match="has other commits") as refused:
        run.push_result(commits["result"])
    assert "git push origin" in refused.value.hint
    assert fleet.remote.git("rev-parse", BRANCH) == commits["other"]


@pytest.mark.parametrize("step", ["base", "inputs", "outputs"])
def test_a_step_may_have_any_id(fleet, commits, run, step):
    """A ref cannot be a folder of other refs, so the refs of steps need names of their own."""
    assert reserve_number(run.clone, fleet.url, "ship", commits["main"]) == 1
    merge = f"{run.refs}{name_merge(step, 'outputs')}"
    run.push(merge, commits["result"])
    assert merge in run.fetch()
