"""A project whose agent is a small program, and hosts that are real workers."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fleet.apart import Apart
from rekindle.wiring.access import trust_checks

AGENT = """\
import os, pathlib, sys, time
told = sys.stdin.read()
pathlib.Path("told.md").open("a").write(told)
while pathlib.Path(os.environ["HOLD"]).exists():
    time.sleep(0.05)
done = len(list(pathlib.Path(".").glob("step-*")))
pathlib.Path(f"step-{done + 1}").write_text("x")
draft = pathlib.Path(os.environ["REKINDLE_FOLDER"].replace("/agents/", "/drafts/"), "relay.md")
draft.write_text(f"## Current Phase\\nSteps\\n\\n## Next Action\\nDo step {done + 2} of the list")
"""


class Place:
    """A project's folder, the git remote of its work, and the file that keeps its agent busy."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.project, self.remote = folder / "project", folder / "remote.git"
        self.hold = folder / "hold"
        self.agent = agent
        self.project.mkdir()
        (self.project / "agent.py").write_text(AGENT)
        (self.project / "PROMPT.md").write_text("Do the list.\n")
        (self.project / ".gitignore").write_text(".rekindle/\nrekindle.yaml\n")
        self.say()
        self._git("init", "-q", "--bare", "-b", "main", str(self.remote))
        self._git("--git-dir", str(self.remote), "config", "core.logAllRefUpdates", "always")
        self._git("init", "-q", "-b", "main")
        self._git("remote", "add", "origin", str(self.remote))
        self.push()

    def say(self, more: str = "") -> None:
        """Write the manifest, as the operator who has accepted it."""
        program = [sys.executable, str(self.project / "agent.py")]
        (self.project / "rekindle.yaml").write_text(
            f"version: 1\nagents:\n  {self.agent}:\n    harness: command\n"
            f"    command: {program}\n    cycles: 2\n    env: {{HOLD: {self.hold}}}\n"
            f"personas: {{summarizer: {{adapter: command, command: ['false']}}}}\n{more}\n"
        )
        trust_checks.accept_folder(self.project)

    def push(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "work")
        self._git("push", "-q", "origin", "main")

    def pushed(self, file: str) -> str:
        """Return a file of the agent's work, as its host pushed it."""
        revision = f"refs/heads/rekindle/{self.agent}/work:{file}"
        return self._git("--git-dir", str(self.remote), "show", revision)

    def count_pushes(self) -> int:
        """Return how often the agent's branch was pushed."""
        log = self.remote / f"logs/refs/heads/rekindle/{self.agent}/work"
        return len(log.read_text().splitlines())

    def _git(self, *words: str) -> str:
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        done = subprocess.run(
            ["git", *who, *words], cwd=self.project, check=True, capture_output=True, text=True
        )
        return done.stdout


@contextlib.contextmanager
def worker(project: Path, root: Path | None, host: str) -> Iterator[Apart]:
    """Run a host, from its first output until it is asked to exit."""
    argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--trust", "--host", host]
    argv += ["--sandbox", "off", *(["--root", str(root)] if root else [])]
    process = Apart(argv, cwd=project, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "takes up to" in process.stdout.readline()
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.close()
