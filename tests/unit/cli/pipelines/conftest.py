"""A project with a pipeline, and runs that the tests write event by event."""

from datetime import UTC, datetime, timedelta

import pytest

import worktrees
from rekindle import config
from rekindle.cli import main
from rekindle.documents.manifest import AgentEntry
from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    PipelineEnded,
    PipelineStarted,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
)
from rekindle.policy.pipelines.run_definition import RunDefinition, WorkerRecord
from rekindle.policy.pipelines.run_plan import make_plan
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.pipelines.run_folder import create_run

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
MANIFEST = """\
version: 1
agents: {trades: {harness: command, command: cat}}
pipelines:
  review:
    budget: {usd: 30}
    steps:
      - {id: plan, prompt: Plan., outputs: {items: items.json}}
      - id: build
        depends_on: [plan]
        prompt: "Build {{ item }}."
        strategy: {matrix: {from: plan.items}}
  ship: {steps: [{id: all, run: just}]}
"""


class MadeRun:
    """A run of `review` whose events the test writes."""

    def __init__(self, folder, git, pipeline="review", text=""):
        project = config.load_project(folder)
        self.path, self._git, self.now = folder, git, NOW
        self.base = git("rev-parse", "HEAD")
        definition = RunDefinition(
            pipeline=pipeline,
            base=self.base,
            input=text,
            definition=project.manifest.pipelines[pipeline],
            plan=make_plan(project.manifest, project.marked, pipeline),
        )
        started = PipelineStarted(ts=NOW, pipeline=pipeline, run=0, base=self.base)
        self.folder = create_run(find_private_project(folder), definition, started)

    def append(self, kind, **fields):
        self.now += timedelta(minutes=1)
        with self.folder.hold() as lock:
            assert lock
            self.folder.append(kind(ts=self.now, **fields))

    def commit(self, name, text, parent=None):
        """Commit a file on no branch, and return the commit."""
        head = self._git("symbolic-ref", "--short", "HEAD")
        self._git("checkout", "-q", parent or self.base)
        (self.path / name).write_text(text)
        self._git("add", "--", name)
        self._git("commit", "-qm", f"write {name}")
        commit = self._git("rev-parse", "HEAD")
        self._git("checkout", "-q", head)
        return commit

    def begin(self, step, key="", commit=None, attempt=1):
        agent = "-".join(filter(None, ("review", str(self.folder.run), step, key)))
        fields = {"step": step, "worker": key, "attempt": attempt, "commit": commit or self.base}
        self.append(WorkerBegan, agent=agent, **fields)
        entry = AgentEntry(harness="command", command=["cat"], workspace="clone")
        records = self.folder.read_workers()
        self.folder.write_workers({**records, agent: WorkerRecord(entry=entry, **fields)})
        return agent

    def end(self, step, key="", commit="", outcome="done", attempt=1, **fields):
        self.append(
            WorkerEnded,
            step=step,
            worker=key,
            attempt=attempt,
            outcome=outcome,
            commit=commit,
            **fields,
        )
        if outcome == "done" and not key:
            self.append(StepMerged, step=step, commit=commit, merged=("",))

    def plan(self):
        """Finish the step `plan`, and list the items a and b."""
        self.begin("plan")
        self.end("plan", commit=self.base, usd=0.5)
        self.append(ItemsFound, step="build", workers=("a", "b"))

    def finish(self):
        """Finish the run with one file of each worker. Return the result."""
        self.plan()
        first = self.commit("a.txt", "a\n")
        second = self.commit("b.txt", "b\n", first)
        for key, commit in (("a", first), ("b", second)):
            agent = self.begin("build", key)
            self._git("update-ref", f"refs/heads/rekindle/{agent}/work", commit)
            self.end("build", key, commit, usd=1.25)
        self.append(StepMerged, step="build", commit=second, merged=("a", "b"))
        self.append(PipelineEnded, outcome="done", commit=second)
        self._git("update-ref", f"refs/heads/rekindle/review/{self.folder.run}", second)
        return second


@pytest.fixture
def git(tmp_path):
    """Run git in the project; return its output."""
    return lambda *words: worktrees.git(tmp_path, *words).decode().strip()


@pytest.fixture
def make_run(tmp_path, git, monkeypatch):
    """Return a function that creates a run in a new project."""
    git("init", "-q", "-b", "main")
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / ".gitignore").write_text(".rekindle\n")
    git("add", "-A")
    git("commit", "-qm", "start")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda pipeline="review", text="": MadeRun(tmp_path, git, pipeline, text)


@pytest.fixture
def rekindle(capfd):
    """Run a command; return its exit code and output."""

    def run(*words):
        code = main.run(["pipeline", *words])
        out, err = capfd.readouterr()
        return code, out + err

    return run
