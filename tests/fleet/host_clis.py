"""An agent of a real CLI on the hosts of a fleet, in the sandbox there, with its scripted model.

Each host has its own home, and so its own sessions of the CLI. The operator's commands run in the
project's folder, which no host reads.
"""

import contextlib
import io
import json
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from e2e.handing import KINDS, STEP, Handing
from e2e.sandbox import TASK
from fleet.crowd import git
from fleet.engine import Engine
from fleet.hosts import Host
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.codex_cli import CONFIG, CodexSandbox
from loopback.gemini import Gemini
from loopback.gemini_cli import GeminiSandbox
from loopback.log import Request
from loopback.model import Dialect, Model
from loopback.namespace import Namespace
from loopback.openai import OpenAI
from loopback.script import Forever, Step, ToolCall, Usage
from rekindle.cli import main

AGENT: Final = "trades"
OTHERS: Final = {"GITHUB_TOKEN": "of-the-host", "DATABASE_URL": "postgres://of-the-host"}
"""Variables of the host that no agent gets."""
CLIS: Final[dict[str, tuple[type[Any], type[Dialect]]]] = {
    "claude": (ClaudeSandbox, Anthropic),
    "codex": (CodexSandbox, OpenAI),
    "gemini": (GeminiSandbox, Gemini),
}
RUNTIME: Final = {
    "relay": {"summarizer": "mechanical"},
    "restart": {"cooldown": "0s"},
    "brief": {"at": "never"},
}
LOOK_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.2
PERMISSIONS: Final = {
    "claude": {"allowed_tools": ["Bash"]},
    "codex": {},
    "gemini": {"allowed_tools": ["Bash"]},
}
"""Permission to run commands; Codex has it without a rule."""
_USER: Final = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
_CODEX: Final = """\
sandbox_mode = "danger-full-access"
{config}
[features]
plugin_discovery_prefetch = false
"""


class CliHost(Host):
    """A host whose home has the CLI's settings."""

    def __init__(self, name: str, folder: Path, *, cli: Any, slots: int = 2, **more: Any) -> None:
        # The sandbox allows the model's host. Codex itself reads it from its settings.
        environment = cli.environment(LC_ALL="C.UTF-8", OPENAI_BASE_URL=cli.model.url, **OTHERS)
        # Without options, the worker contains its agents.
        super().__init__(name, folder, environment=environment, slots=slots, options=(), **more)
        self.cli = cli

    @property
    def work(self) -> Path:
        """Return the folder that the agent works in."""
        return self.root / f"default~{AGENT}" / "work"

    def signal(self, pid: int, number: signal.Signals) -> None:
        assert self._place is not None
        self._place.signal(pid, number)

    def operate(self, *words: str) -> str:
        """Run a command on the host, with its home."""
        assert self._place is not None
        argv = [sys.executable, "-m", "rekindle", *words]
        ran = self._place.start(argv, env=self._environment, cwd=self._project)
        assert ran.wait(60) == 0, ran.out + ran.err
        return ran.out

    def kill_worker(self) -> None:
        """Kill the worker alone with -9, and leave everything that it started to itself."""
        assert self._worker is not None
        self._worker.signal(signal.SIGKILL)
        assert self._worker.wait(30) == -signal.SIGKILL

    def list_launched(self) -> list[list[str]]:
        """Return the processes of all launches, and of their sandboxes."""
        return [
            one["argv"]
            for one in self.look()
            if one["launch"] or Path((one["argv"] or [""])[0]).name == "bwrap"
        ]

    def find_cli(self, kind: str) -> int:
        """Return the pid of the CLI itself, inside its sandbox."""
        # Gemini CLI is a program for node.
        found = [
            one["pid"]
            for one in self.look()
            if kind in {Path(word).name.removesuffix(".js") for word in one["argv"][:2]}
        ]
        assert len(found) == 1, self.look()
        return int(found[0])


class HostedCli:
    """One CLI, its model, its agent, and the hosts that may run it."""

    def __init__(
        self,
        kind: str,
        program: Path,
        *,
        engine: Engine,
        folder: Path,
        stack: contextlib.ExitStack,
    ) -> None:
        self.kind, self._program, self._engine = kind, program, engine
        self._folder, self._stack = folder, stack
        self._sandbox, dialect = CLIS[kind]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.model = stack.enter_context(Model(dialect(), self._listener))
        self.hosts: dict[str, CliHost] = {}
        self.remote, self.project = folder / "remote.git", folder / "project"
        git("init", "-q", "--bare", "-b", "main", str(self.remote))
        git("clone", "-q", str(self.remote), str(self.project))
        made, _ = KINDS[kind]
        self.words: Handing = made(self, None, self.model)

    def begin(
        self,
        *,
        hosts: tuple[str, ...] = ("x",),
        sandbox: bool | None = True,
        heartbeat: str = "30s",
        permissions: dict[str, list[str]] | None = None,
        runtime: dict[str, Any] | None = None,
        **agent: Any,
    ) -> "HostedCli":
        """Write the project, and start the hosts."""
        (self.project / "PROMPT.md").write_text(TASK)
        (self.project / "step.py").write_text(STEP)
        (self.project / ".gitignore").write_text(".rekindle\nrekindle.yaml\n")
        if self.kind == "claude":
            (self.project / ".claude").mkdir()
            settings = json.dumps({"model": self.words.MODEL})
            (self.project / ".claude/settings.json").write_text(settings)
        git("add", "-A", cwd=self.project)
        git(*_USER, "commit", "-qm", "begin", cwd=self.project)
        git("push", "-q", "origin", "HEAD:main", cwd=self.project)
        rules = PERMISSIONS[self.kind] if permissions is None else permissions
        entry = {
            "harness": self.words.HARNESS,
            "prompt": "PROMPT.md",
            "cycles": 1,
            "until": ["true"],
            **({"sandbox": sandbox} if sandbox is not None else {}),
            "handover": {"compaction": {"trigger": "token_limit_80%"}},
        }
        manifest = {
            "version": 1,
            "agents": {AGENT: entry | agent},
            "personas": {"default": {"permissions": rules}},
            "runtime": RUNTIME | (runtime or {}),
            "fleet": {"address": self._engine.address, "heartbeat_timeout": heartbeat},
        }
        (self.project / "rekindle.yaml").write_text(json.dumps(manifest, indent=1))
        self._cycles = agent.get("cycles", 1)
        for name in hosts:
            self.add_host(name)
        return self

    def add_host(self, name: str) -> CliHost:
        """Start one more host, with an empty home."""
        network = self._stack.enter_context(Namespace())
        folder = self._folder / name
        where = {"network": network} if self.kind == "claude" else {"place": None}
        cli = self._sandbox(self._program, model=self.model, root=folder / "home", **where)
        self._configure(cli)
        ports = (self._engine.port, self._listener.getsockname()[1])
        host = CliHost(name, folder, cli=cli, project=self.project, ports=ports, network=network)
        self.hosts[name] = self._stack.enter_context(host)
        host.start()
        if self.kind == "gemini":
            # Only settings of the user can bring hooks, so each host needs them.
            host.operate("hooks", "install", "--harness", "gemini", "--for", "user")
        return host

    def _configure(self, cli: Any) -> None:
        model = self.words.MODEL
        match self.kind:
            case "codex":
                config = CONFIG.format(model=model, url=self.model.url)
                cli.configure(_CODEX.format(config=config))
            case "gemini":
                # Otherwise it would compact at half of its window.
                cli.configure(model={"name": model, "compressionThreshold": 1})

    # Actions

    def operate(self, *words: str, code: int = 0) -> str:
        """Run a command of the operator, and return its output."""
        output = io.StringIO()
        with contextlib.chdir(self.project), contextlib.redirect_stdout(output):
            assert main.run([*words]) == code, (words, output.getvalue())
        return output.getvalue()

    def play(self, *steps: Step | Forever) -> None:
        self.model.play(*steps)

    def run(self) -> None:
        self.operate("run", AGENT)

    def call(self, *words: Any, **more: Any) -> ToolCall:
        return self.words.call(*words, **more)

    def filled(self, share: float) -> Usage:
        return self.words.filled(share)

    def shell(self, *argv: str) -> ToolCall:
        return self.words.bash(shlex.join(argv))

    # Observations

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        lines = self._read_log().splitlines()
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in {"", one["kind"]}]

    def _read_log(self) -> str:
        """Return the log; on a busy machine, no worker may answer the first time."""
        words = ("events", AGENT, "--json", "--last", "0")
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return self.operate(*words)
        return self.operate(*words)

    def wait_for(self, found: Callable[[], Any], seconds: float = 150) -> Any:
        """Wait until `found` returns something; fail at once if the agent waits for a person."""
        deadline, looked_at, is_stuck = time.monotonic() + seconds, time.monotonic(), False
        while True:
            if time.monotonic() - looked_at > LOOK_SECONDS:
                looked_at, is_stuck = time.monotonic(), self._is_stuck()
            if result := found():
                return result
            assert not is_stuck, self.explain()
            assert time.monotonic() < deadline, self.explain()
            time.sleep(POLL_SECONDS)

    def _is_stuck(self) -> bool:
        found = self.events()
        return bool(found) and found[-1]["kind"] == "question.asked"

    def wait_for_request(self, step: Step) -> Request:
        """Return the request that this step of the script answers."""
        return self.wait_for(
            lambda: next((one for one in self.model.log if one.step is step), None)
        )

    def wait_until_over(self) -> list[dict[str, Any]]:
        """Return all events of the run, once it is over."""

        def read() -> list[dict[str, Any]]:
            # A query to the engine costs more than a look at the hosts.
            found = self.events() if self._is_last_cycle_over() else []
            return found if any(one["kind"] == "run.ended" for one in found) else []

        return list(self.wait_for(read))

    def _is_last_cycle_over(self) -> bool:
        logs = self._folder.glob(f"*/*/*/.rekindle/agents/{AGENT}/ops.jsonl")
        ended = f'"kind":"cycle.ended","cycle":{self._cycles},'.encode()
        return any(ended in log.read_bytes() for log in logs)

    def explain(self) -> str:
        said = [f"{name}: {host.said}" for name, host in self.hosts.items()]
        return "\n".join([*map(str, self.events()), *said])
