"""A project with pipelines whose workers are small programs, in a place of its own.

A worker runs each line of its prompt that starts with `$ ` in a shell, and keeps its prompt.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import worktrees
from e2e.sandbox import Rekindle
from e2e.test_command import Program
from loopback.place import Place, Started
from rekindle.documents.pipelines.pipeline_events import PipelineResumed, PipelineStopped
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.stores.pipelines.run_folder import RunFolder

COORDINATOR = "rekindle.wiring.pipelines.coordinator_process"
AGENT = """\
import subprocess, sys
prompt = sys.stdin.read()
with open("prompts.log", "a") as log:
    log.write(prompt + "\\0")
for line in prompt.splitlines():
    if line.startswith("$ "):
        subprocess.run(["sh", "-c", line[2:]], check=False)
"""
PERSONAS = f"""\
version: 1
personas:
  default: {{adapter: command, command: [{sys.executable}, -IS, agent.py], sandbox: off}}
  sandboxed: {{adapter: command, command: [{sys.executable}, -IS, agent.py]}}
"""
START = """\
import sys
from pathlib import Path
from rekindle import config
from rekindle.wiring.access import trust_checks
from rekindle.wiring.pipelines import start_run
project = config.load_project(Path.cwd())
trust_checks.accept_project(project)
folder = start_run.start_run(project, *sys.argv[1:])
print(folder.path, folder.outputs)
"""
WATCH = """\
import sys, time
from pathlib import Path
from rekindle import config
from rekindle.wiring.pipelines import start_run
project = config.load_project(Path.cwd())
start_run.start_missing_coordinators(project)
while "--forever" in sys.argv:
    time.sleep(0.2)
    start_run.start_missing_coordinators(project)
"""
"""Starts the coordinators that are missing, as a daemon does."""


class PipelineRun:
    """A run, seen from outside."""

    def __init__(self, project: "PipelineProject", folder: RunFolder) -> None:
        self.folder, self._project = folder, project

    @property
    def state(self) -> PipelineState:
        return self.folder.read_state()

    def list_events(self, kind: str) -> list[dict[str, Any]]:
        lines = self.folder.log.read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def wait(self, outcome: str, timeout: float = 120) -> PipelineState:
        """Wait until the run has ended, and check how."""
        try:
            self._project.place.wait_for(lambda: self.state.ended, timeout)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from error
        assert self.state.ended == outcome, self.describe()
        return self.state

    def describe(self) -> str:
        output = self.folder.output_log.read_text(errors="replace")
        return f"{self.folder.log.read_text()}\n{self.folder.read_notice()}\n{output}"

    def stop(self) -> None:
        self.folder.submit(PipelineStopped(ts=datetime.now(UTC)))

    def resume(self, **budget: float) -> None:
        self.folder.submit(PipelineResumed(ts=datetime.now(UTC), budget=budget))
        watch = self._project.start_program(WATCH)
        assert watch.wait() == 0, watch.err

    def find_agents(self) -> dict[tuple[str, str], str]:
        return {place: worker.agent for place, worker in self.state.workers.items()}

    def read_prompts(self, agent: str) -> list[str]:
        """Return each prompt that the worker's program received."""
        return (self.find_work(agent) / "prompts.log").read_text().split("\0")[:-1]

    def has_file(self, agent: str, name: str) -> bool:
        """Return whether a worker has its folder, with this file in it."""
        try:
            return (self.find_work(agent) / name).exists()
        except (FileNotFoundError, ValueError):
            return False

    def find_work(self, agent: str) -> Path:
        """Return the folder that a worker works in."""
        log = self._project.path / ".rekindle/agents" / agent / "ops.jsonl"
        events = map(json.loads, log.read_text().splitlines())
        [created] = [event for event in events if event.get("kind") == "workspace.created"][-1:]
        return Path(created["folder"])

    @property
    def branch(self) -> str:
        return f"rekindle/{self.folder.pipeline}/{self.folder.run}"

    def list_files(self) -> dict[str, str]:
        """Return the files of the result, without those of the first commit."""
        git = self._project.git
        before = set(git("ls-tree", "-r", "--name-only", "main").splitlines())
        names = git("ls-tree", "-r", "--name-only", self.branch).splitlines()
        return {name: git("show", f"{self.branch}:{name}") for name in names if name not in before}


class PipelineProject:
    def __init__(self, place: Place, root: Path | None = None, program: Any = None) -> None:
        """Create the project in a new folder, or in that of an agent CLI."""
        self.program = program or Program(root)
        self.place, self.path = place, self.program.project
        self.rekindle = Rekindle(self.program, place)

    def write(
        self, pipelines: str, files: Mapping[str, str] | None = None, personas: str = ""
    ) -> "PipelineProject":
        """Write the manifest and the files, and commit them."""
        manifest = f"{PERSONAS}{personas}pipelines:\n{pipelines}"
        (self.path / "rekindle.yaml").write_text(manifest)
        named = {"agent.py": AGENT, ".gitignore": "*.log\n.rekindle\n", **(files or {})}
        for name, text in named.items():
            (self.path / name).write_text(text)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "The User")
        self.git("config", "user.email", "user@example.org")
        self.git("add", "-A")
        self.git("commit", "-qm", "one")
        return self

    def git(self, *words: str) -> str:
        return worktrees.git(self.path, *words).decode()

    def start_program(self, text: str, *arguments: str) -> Started:
        argv: Sequence[str] = [sys.executable, "-I", "-c", text, *arguments]
        environment = self.program.environment(LC_ALL="C.UTF-8")
        return self.place.start(argv, env=environment, cwd=self.path)

    def list_rekindle(self) -> dict[int, list[str]]:
        """Return the coordinators and supervisors that are running."""
        living = self.place.living().items()
        return {pid: argv for pid, argv in living if "rekindle" in " ".join(argv[:5])}

    def list_coordinators(self) -> dict[int, list[str]]:
        return {pid: argv for pid, argv in self.list_rekindle().items() if COORDINATOR in argv}

    def start_coordinator(self, folder: RunFolder) -> Started:
        argv = [sys.executable, "-I", "-m", COORDINATOR, folder.pipeline, str(folder.run)]
        environment = self.program.environment(LC_ALL="C.UTF-8")
        return self.place.start(argv, env=environment, cwd=self.path)

    def start(self, name: str = "ship", text: str = "") -> PipelineRun:
        started = self.start_program(START, name, text)
        assert started.wait() == 0, started.out + started.err
        path, outputs = map(Path, started.out.split())
        return PipelineRun(self, RunFolder(path, outputs))

    def run(self, name: str = "ship", text: str = "", outcome: str = "done") -> PipelineRun:
        run = self.start(name, text)
        run.wait(outcome)
        return run
