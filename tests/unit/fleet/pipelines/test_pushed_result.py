"""The check of a fleet worker's result, which its host pushed to a git remote."""

from datetime import UTC, datetime

import pytest

import worktrees
from rekindle.documents import events
from rekindle.documents.commits.work_commit import make_work_ref
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import PipelineStarted, WorkerBegan
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.fleet.pipelines.pushed_result import PushedResult
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.next_move import AgentLimits
from rekindle.policy.supervision.run_moves import LogPosition, RunState
from rekindle.thresholds.pipeline_limits import PUSH_ATTEMPTS

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
AGENT = "ship-1-build"
PLACE = {"step": "build", "worker": ""}
UNPUSHED = events.WorkspacePushFailed(ts=NOW, words="the remote is down")


class Remote:
    """A remote with a run of one step, and the host that checks its worker."""

    def __init__(self, root):
        self.root, self.bare, self.project = root, root / "remote.git", root / "project"
        self.project.mkdir()
        self.git("init", "-q", "--bare", "-b", "main", str(self.bare))
        self.git("init", "-q", "-b", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "begin")
        self.git("push", "-q", str(self.bare), "main")
        self.base = self.git("rev-parse", "HEAD")
        self.log = [PipelineStarted(ts=NOW, pipeline="ship", run=1, base=self.base)]

    def git(self, *words):
        return worktrees.git(self.project, *words).decode().strip()

    def push_work(self, *, is_orphan=False):
        """Push a commit of the worker, with one uncommitted file, and return the event."""
        parents = () if is_orphan else ("-p", self.base)
        tree = self.git("rev-parse", "HEAD^{tree}")
        head = self.git("commit-tree", *parents, "-m", "work", tree)
        (self.project / "more.txt").write_text("more\n")
        self.git("add", "more.txt")
        revision = self.git("commit-tree", "-p", head, "-m", "all", self.git("write-tree"))
        self.git("push", "-q", "-f", str(self.bare), f"{revision}:{make_work_ref(AGENT)}")
        return events.WorkspacePushed(ts=NOW, revision=revision, head=head, branch="main")

    def check(self, projection, *, attempt=1, own=None, cap=None):
        definition = AgentDefinition(
            manifest="version: 1\n",
            pool="p",
            heartbeat_seconds=5,
            remote=str(self.bare),
            limits=AgentLimits(budget=cap),
            worker=PipelineWorker(workflow="w", attempt=attempt),
        )
        registered = RegisteredPipeline(
            definition=RunDefinition(
                pipeline="ship",
                run=1,
                base=self.base,
                definition=Pipeline(steps=[PipelineStep(id="build")]),
                plan=RunPlan(pipeline="ship", steps=(StepPlan(id="build", budget=own),)),
            ),
            agent=definition,
            lines=tuple(events.render(event).decode() for event in self.log),
        )
        began = WorkerBegan(ts=NOW, attempt=attempt, agent=AGENT, commit=self.base, **PLACE)
        agent = RegisteredAgent(agent=AGENT, definition=definition, projection=projection)
        run = HostRun(self.root / "host", "host", registered)
        return PushedResult(run, began, agent).check(Redaction(()))


def make_projection(why="done", **more):
    """Return the projection of an agent whose run has ended."""
    spent = RunSpending(seq=2, usd=3.0, tokens=10)
    run = RunState(wanted=1, began=1, began_at=NOW, ended=LogPosition(9, why), spent=spent)
    return Projection(agent=AGENT, seq=9, run=run, **more)


@pytest.fixture
def remote(tmp_path):
    return Remote(tmp_path)


@pytest.mark.parametrize(
    ("own", "outcome"), [(None, "stopped"), (Budget(usd=9), "stopped"), (Budget(usd=2.5), "failed")]
)
def test_a_worker_that_spends_the_rest_of_the_run_is_stopped(remote, own, outcome):
    """The operator can raise the budget of the run and resume it, as on a laptop."""
    projection = make_projection("budget", workspace=remote.push_work())
    ended = remote.check(projection, own=own, cap=Budget(usd=2.5))
    assert (ended.outcome, ended.usd, bool(ended.why)) == (outcome, 3.0, outcome == "failed")


def test_commits_without_a_common_ancestor_fail_the_attempt(remote):
    """Git could not merge them, so the run would wait forever."""
    ended = remote.check(make_projection(workspace=remote.push_work(is_orphan=True)))
    assert (ended.outcome, ended.commit) == ("failed", remote.base)
    assert ended.why == f"its commits do not continue {remote.base[:12]}, from which it started"
    related = remote.check(make_projection(workspace=remote.push_work()), attempt=2)
    assert (related.outcome, related.why) == ("done", "")


def test_a_failed_push_uses_up_an_attempt_only_if_it_lasts(remote):
    """The worker is resumed, and its next push includes the work."""
    projection = make_projection(workspace=remote.push_work(), unpushed=UNPUSHED)
    outcomes = []
    for attempt in range(1, PUSH_ATTEMPTS + 1):
        ended = remote.check(projection, attempt=attempt)
        assert ended.why == "its work could not be pushed: the remote is down"
        outcomes.append(ended.outcome)
        began = WorkerBegan(ts=NOW, attempt=attempt, agent=AGENT, commit=remote.base, **PLACE)
        remote.log += [began, ended]
    assert outcomes == [*["stopped"] * (PUSH_ATTEMPTS - 1), "failed"]
    assert remote.check(projection, attempt=PUSH_ATTEMPTS + 1).outcome == "stopped"


def test_a_repeated_check_returns_the_same_commit(remote, monkeypatch):
    """Another host, where git has another author, may repeat a check after its answer was lost."""
    projection = make_projection(workspace=remote.push_work())
    first = remote.check(projection)
    assert first.commit not in {remote.base, projection.workspace.head}
    author = {"GIT_AUTHOR_NAME": "other", "GIT_AUTHOR_EMAIL": "other@localhost"}
    monkeypatch.setattr("rekindle.system.git.branch_merge.find_identity", lambda _: author)
    assert remote.check(projection).commit == first.commit
    assert remote.check(projection, attempt=2).commit != first.commit
