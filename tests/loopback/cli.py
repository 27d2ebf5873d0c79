"""Claude Code in a sandbox."""

import contextlib
import json
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loopback.model import Model
from loopback.namespace import Namespace
from loopback.sandbox import KEY, Folders, Run

HEADLESS: Final = ("-p", "--output-format", "stream-json", "--verbose")


class ClaudeRun(Run):
    @property
    def result(self) -> dict[str, Any]:
        """Return the last result; a killed run has none."""
        assert self.of("result"), f"no result; stdout {self.stdout!r}, stderr {self.stderr!r}"
        return self.of("result")[-1]

    @property
    def session(self) -> str:
        identity: str = self.of("system", "init")[0]["session_id"]
        return identity


class Running:
    """A started run; its output goes to files, so that nothing has to read it."""

    def __init__(
        self, argv: list[str], *, prompt: str, environment: Mapping[str, str], cwd: Path, to: Path
    ) -> None:
        to.mkdir(parents=True)
        self._to = to
        (to / "stdin").write_text(prompt)
        with (
            (to / "stdin").open("rb") as stdin,
            (to / "stdout").open("wb") as stdout,
            (to / "stderr").open("wb") as stderr,
        ):
            self.process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, env=dict(environment), cwd=cwd
            )

    def wait(self, timeout: float) -> ClaudeRun:
        """Wait for the end of the run; if it takes longer, end it and fail the test."""
        try:
            code = self.process.wait(timeout)
        finally:
            self.end()
        out, err = ((self._to / name).read_text(errors="replace") for name in ("stdout", "stderr"))
        return ClaudeRun(code, out, err)

    def end(self) -> None:
        """End it if it still runs: SIGTERM ends its tools too, SIGKILL does not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(10)


class ClaudeSandbox(Folders):
    def __init__(self, program: Path, *, model: Model, network: Namespace, root: Path) -> None:
        super().__init__(root)
        self.program, self.model, self.network = program, model, network
        self._runs = root / "runs"
        (self.bin / "claude").symlink_to(program)
        self._started: list[Running] = []

    def environment(self, **more: str) -> dict[str, str]:
        """Return the whole environment of the program."""
        return {
            **super().environment(),
            "IS_SANDBOX": "1",  # as root, it refuses to skip permissions without this
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",  # ten by default, with minutes of waiting
            **more,
        }

    def start(self, prompt: str, *arguments: str, **environment: str) -> Running:
        """Start a headless run, with the prompt on its standard input."""
        return self.launch([str(self.program), *HEADLESS, *arguments], prompt, **environment)

    def launch(self, argv: Sequence[str], prompt: str, **environment: str) -> Running:
        """Start a command of the test in the model's network."""
        running = Running(
            self.network.argv([*argv]),
            prompt=prompt,
            environment=self.environment(**environment),
            cwd=self.project,
            to=self._runs / str(len(self._started)),
        )
        self._started.append(running)
        return running

    def run(
        self, prompt: str, *arguments: str, timeout: float = 60, **environment: str
    ) -> ClaudeRun:
        """Run to the end."""
        return self.start(prompt, *arguments, **environment).wait(timeout)

    def settings(self, hooks: Mapping[str, Sequence[str]], **more: Any) -> Path:
        """Write a file for `--settings`, with one command for each event."""
        hooked = {
            event: [{"hooks": [{"type": "command", "command": shlex.join(argv), "timeout": 30}]}]
            for event, argv in hooks.items()
        }
        path = self.home / f"settings-{len(list(self.home.glob('settings-*')))}.json"
        path.write_text(json.dumps({"hooks": hooked, **more}))
        return path

    def transcript(self, session: str) -> Path:
        """Return the file of this session."""
        (found,) = (self.home / ".claude" / "projects").glob(f"*/{session}.jsonl")
        return found

    def beside(self, session: str) -> list[Path]:
        """Return the folder of the session's sub-agents."""
        projects = self.home / ".claude" / "projects"
        return sorted(projects.glob(f"*/{session}/subagents/**/*.jsonl"))

    def close(self) -> None:
        """End the processes that a failed test has left running."""
        for running in self._started:
            running.end()
