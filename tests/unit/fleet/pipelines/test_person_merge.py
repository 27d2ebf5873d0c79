"""A person's merge for a pipeline on a fleet, whose hosts share only a git remote."""

from datetime import UTC, datetime

import worktrees
from rekindle.documents import events
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import (
    PipelineStarted,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
)
from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.fleet.pipelines.pipeline_activities import find_person_merge, prepare_person_merge
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
STEPS = ("left", "right")


def make_registered(remote, base, commits):
    """Return a run of two steps, whose commits conflict."""
    log = [PipelineStarted(ts=NOW, pipeline="ship", run=1, base=base)]
    for step in STEPS:
        place = {"ts": NOW, "step": step, "attempt": 1}
        log += [
            WorkerBegan(agent=f"ship-1-{step}", commit=base, **place),
            WorkerEnded(outcome="done", commit=commits[step], **place),
            StepMerged(ts=NOW, step=step, commit=commits[step], merged=("",)),
        ]
    conflict = {"commit": commits["left"], "merged": ("left",), "conflicts": ("right",)}
    log.append(StepMerged(ts=NOW, stage="result", **conflict))
    return RegisteredPipeline(
        definition=RunDefinition(
            pipeline="ship",
            run=1,
            base=base,
            definition=Pipeline(steps=[PipelineStep(id=step) for step in STEPS]),
            plan=RunPlan(pipeline="ship", steps=tuple(StepPlan(id=step) for step in STEPS)),
        ),
        agent=AgentDefinition(
            manifest="version: 1\n", pool="p", heartbeat_seconds=5, remote=str(remote)
        ),
        lines=tuple(events.render(event).decode() for event in log),
    )


def test_every_host_gets_the_merge_that_one_of_them_has_found(tmp_path):
    project, bare = tmp_path / "project", tmp_path / "remote.git"
    project.mkdir()

    def git(*words):
        return worktrees.git(project, *words).decode().strip()

    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", str(bare))
    git("commit", "-q", "--allow-empty", "-m", "begin")
    base, tree = git("rev-parse", "HEAD"), git("rev-parse", "HEAD^{tree}")
    commits = {step: git("commit-tree", "-p", base, "-m", step, tree) for step in STEPS}
    refs = make_run_refs("ship", 1)
    kept = [f"{commit}:{refs}_outputs/ship-1-{step}/1" for step, commit in commits.items()]
    git("push", "-q", "origin", "main", *kept)
    registered = make_registered(bare, base, commits)
    one, two = (HostRun(tmp_path / name, name, registered) for name in ("one", "two"))

    commands = prepare_person_merge(one, "", "result")
    assert find_person_merge(one, "", "result") is None
    for command in commands[:-2]:
        git(*command.partition("   #")[0].replace("'", "").split()[1:])
    git("merge", "-q", "-m", "by hand", commits["right"])
    git("push", "-q", "origin", "HEAD")
    found = find_person_merge(one, "", "result")
    assert found is not None
    assert found.commit == git("rev-parse", "HEAD")
    two.fetch()
    assert two.clone.has(found.commit)
