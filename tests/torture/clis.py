"""A real agent CLI of each kind, beside our own program, in a place where nothing else lives.

Everything is started by the harness's own `command()`, or by `rekindle run`.
"""

import json
import shlex
import uuid
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from e2e.sandbox import TASK, Rekindle
from loopback import codex_cli, gemini_cli
from loopback.codex_cli import CodexSandbox
from loopback.gemini_cli import GeminiSandbox
from loopback.log import Request
from loopback.model import Model
from loopback.place import Place, Started
from loopback.script import Step, ToolCall
from rekindle.documents.launches.launch_types import (
    FinalReport,
    LaunchExit,
    LaunchSpec,
    LimitReport,
    ProcessResult,
    SessionOpened,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness, codex_hooks
from rekindle.harnesses.gemini import gemini_harness

NAMES: Final = ("claude-code", "codex", "gemini")

_MANIFEST: Final = """\
version: 1
agents:
  trades:
    harness: {harness}
    prompt: PROMPT.md
    cycles: 1
    until: ["true"]
personas:
  summarizer: {{adapter: command, command: ["false"]}}
{persona}"""
_PERSONA: Final = "  default: {permissions: {allowed_tools: [Bash]}}\n"
_TOLD: Final = "mv hooked.tmp hooked"
"""A hook of the test's own says when a tool call begins, and in which process."""
_CODEX: Final = """\
sandbox_mode = "danger-full-access"
{config}
[features]
plugin_discovery_prefetch = false
"""


class Kind(NamedTuple):
    """The differences between the CLIs."""

    harness: ModuleType
    folder: str
    """In the home: where it keeps its sessions, and all else that it knows of them."""
    shell: Callable[[str], ToolCall]
    persona: Persona


_BASH: Final = Persona(permissions=Permissions(allowed_tools=["Bash"]))
KINDS: Final = {
    "claude-code": Kind(
        claude_harness,
        ".claude",
        lambda line: ToolCall("Bash", {"command": line, "description": "as the test says"}),
        _BASH,
    ),
    "codex": Kind(
        codex_harness,
        ".codex",
        lambda line: ToolCall("exec_command", {"cmd": line, "yield_time_ms": 30_000}),
        Persona(),
    ),
    "gemini": Kind(
        gemini_harness,
        ".gemini",
        lambda line: ToolCall("run_shell_command", {"command": line}),
        _BASH,
    ),
}


class Outcome(NamedTuple):
    """The exit of a launch, as our harness reads it."""

    exit: LaunchExit
    opened: str
    """The session that it said it works in; empty: it opened none."""
    told: str
    """All that it printed."""


class Cli:
    """One CLI in its sandbox, and all that a sweep does with it."""

    def __init__(self, name: str, sandbox: Any, model: Model, place: Place) -> None:
        self.name, self.sandbox, self.model, self.place = name, sandbox, model, place
        self.kind = KINDS[name]
        self.folder: Path = sandbox.home / self.kind.folder
        self.folder.mkdir(exist_ok=True)
        self.set_up()

    def set_up(self, hooks: dict[str, Any] | None = None) -> None:
        """Its settings; those of Claude Code are all in its environment."""
        if isinstance(self.sandbox, CodexSandbox):
            config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=self.model.url)
            trusted = ""
            if hooks:
                path = self.folder / "hooks.json"
                path.write_text(json.dumps({"hooks": hooks}))
                for key, value in codex_hooks.make_trust_state(hooks, str(path)).items():
                    trusted += f'\n[hooks.state."{key}"]\n'
                    trusted += f'trusted_hash = "{value["trusted_hash"]}"\n'
            self.sandbox.configure(_CODEX.format(config=config) + trusted)
        elif isinstance(self.sandbox, GeminiSandbox):
            self.sandbox.configure(model={"name": gemini_cli.MODEL}, hooks=hooks or {})
        else:
            (self.folder / "settings.json").write_text(json.dumps({"hooks": hooks or {}}))

    def start(
        self, prompt: str, *, resumes: str = "", project: Path | None = None
    ) -> tuple[LaunchSpec, Started]:
        """Start it by our own command, in the project or in another one."""
        own = str(uuid.uuid4()) if self.kind.harness.CAN.names_sessions else ""
        start = LaunchSpec(
            session=resumes or own,
            resumes=bool(resumes),
            scratch=str(self.sandbox.home),
            persona=self.kind.persona,
            program=(str(self.sandbox.program),),
        )
        command = self.kind.harness.command(start)
        for name, text in command.files.items():
            (self.sandbox.home / name).write_text(text)
        return start, self.place.start(
            command.argv,
            env=self.sandbox.environment(**command.environment),
            cwd=project or self.sandbox.project,
            stdin=prompt,
        )

    def run(self, prompt: str, *, resumes: str = "", project: Path | None = None) -> Outcome:
        """Run it to its end."""
        start, started = self.start(prompt, resumes=resumes, project=project)
        return self.outcome(start, started)

    def outcome(self, start: LaunchSpec, started: Started) -> Outcome:
        code = started.wait()
        seen = [
            one
            for line in started.out.encode().split(b"\n")
            for one in self.kind.harness.read_stream(line)
        ]

        def last(kind: type[Any]) -> Any:
            return next((one for one in reversed(seen) if isinstance(one, kind)), None)

        opened = last(SessionOpened)
        ended = ProcessResult(
            code=code,
            session=start.session,
            resumes=start.resumes,
            opened=opened.session if opened else "",
            finished=last(FinalReport),
            refused=last(LimitReport),
            errors=started.err,
        )
        told = f"exit code {code}: {started.out[-2000:]}\n{started.err[-2000:]}"
        return Outcome(self.kind.harness.classify(ended), ended.opened, told)

    def asked(self, step: Step) -> Request:
        """The request that this step answers, once it has arrived."""
        return self.model.log.wait_for(lambda request: request.step is step, timeout=120)

    def transcripts(self) -> dict[Path, bytes]:
        """Return every session that it keeps, of any owner."""
        return {
            path: path.read_bytes()
            for path in sorted(self.folder.rglob("*.jsonl"))
            if {"projects", "sessions", "chats"} & {parent.name for parent in path.parents}
        }

    def transcript(self, session: str) -> Path:
        found: Path = self.sandbox.transcript(session)
        return found

    def supervised(self) -> Rekindle:
        """The same CLI as the program of an agent in the project."""
        persona = "" if self.name == "codex" else _PERSONA
        (self.sandbox.project / "rekindle.yaml").write_text(
            _MANIFEST.format(harness=self.name, persona=persona)
        )
        (self.sandbox.project / "PROMPT.md").write_text(TASK)
        pid = "$CLAUDE_PID" if self.name == "claude-code" else "$PPID"
        event = "BeforeTool" if self.name == "gemini" else "PreToolUse"
        seconds = 5000 if self.name == "gemini" else 5
        told = shlex.join(["sh", "-c", f'echo "{pid}" >hooked.tmp; {_TOLD}'])
        if self.name != "claude-code":
            told = f'echo "{pid}" >hooked.tmp; {_TOLD}'
        entry = {"type": "command", "command": told, "timeout": seconds}
        self.set_up({event: [{"hooks": [entry]}]})
        return Rekindle(self.sandbox, self.place)
