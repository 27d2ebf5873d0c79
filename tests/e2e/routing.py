"""An agent that may use several real CLIs and accounts, each with its own scripted model."""

import json
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from e2e.handing import STEP, step
from e2e.sandbox import TASK, Rekindle
from e2e.test_codex import SETTINGS
from loopback import anthropic, codex_cli, gemini, gemini_cli, openai
from loopback.sandbox import KEY, Folders
from loopback.script import Fail, ToolCall

LONG = 3600
"""Seconds until a limit resets that no test waits for."""


class Clis(Folders):
    """A home, a project and a PATH with all CLIs; `program` is set for `Rekindle`."""

    def __init__(self, root: Path, programs: dict[str, Path], models: dict[str, Any]) -> None:
        super().__init__(root)
        self.models = models
        for name, program in programs.items():
            (self.bin / name).symlink_to(program)
        node = shutil.which("node")
        if node is not None:
            (self.bin / "node").symlink_to(node)
        self.program = self.bin / "claude"
        self.make_codex(self.home / ".codex")
        (self.home / ".gemini").mkdir()
        settings = gemini_cli.SETTINGS | {"model": {"name": gemini_cli.MODEL}}
        (self.home / ".gemini/settings.json").write_text(json.dumps(settings))
        trusted = {str(self.project): "TRUST_FOLDER"}
        (self.home / ".gemini/trustedFolders.json").write_text(json.dumps(trusted))

    def make_codex(self, folder: Path, model: Any = None, key: str = "") -> Path:
        """Create a configuration folder of Codex; an account has its own model and key in it."""
        folder.mkdir(parents=True)
        url = (model or self.models["codex"]).url
        config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=url)
        config = config.replace("max_retries = 1", "max_retries = 0")
        if key:
            config = config.replace(
                'env_key = "OPENAI_API_KEY"', f'experimental_bearer_token = "{key}"'
            )
        text = SETTINGS.format(config=config, project=self.project)
        (folder / "config.toml").write_text(text)
        return folder

    def make_claude(self, folder: Path, model: Any) -> Path:
        """Create a configuration folder of Claude Code whose helper prints the account's key."""
        folder.mkdir(parents=True)
        settings = {"apiKeyHelper": f"echo {KEY}", "env": {"ANTHROPIC_BASE_URL": model.url}}
        (folder / "settings.json").write_text(json.dumps(settings))
        return folder

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **super().environment(),
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": self.models["claude"].url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "OPENAI_API_KEY": KEY,
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": self.models["gemini"].url,
            "GEMINI_CLI_NO_RELAUNCH": "true",
            **more,
        }


class Routing:
    """The project of an agent on several routes."""

    def __init__(self, clis: Clis, place: Any) -> None:
        self.clis, self.project = clis, clis.project
        self.rekindle = Rekindle(clis, place)
        self.claude, self.codex, self.gemini = (
            clis.models[name] for name in ("claude", "codex", "gemini")
        )

    def begin(self, manifest: str) -> None:
        (self.project / "rekindle.yaml").write_text(manifest)
        (self.project / "PROMPT.md").write_text(TASK)
        (self.project / "step.py").write_text(STEP)
        ignored = ".rekindle\n.claude\n.gemini\nbegan-*\nended-*\nworked\n"
        (self.project / ".gitignore").write_text(ignored)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
            own = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
            subprocess.run(["git", *own, *words], cwd=self.project, check=True)

    def routes(self) -> list[str]:
        """Return the route of each launch."""
        found = self.rekindle.events("launch.started")
        return ["/".join(filter(None, (one["harness"], one.get("account", "")))) for one in found]

    def exits(self) -> list[str]:
        return [one["exit"] for one in self.rekindle.events("launch.ended")]

    @property
    def worked(self) -> str:
        """Return the names of the finished calls, in order."""
        path = self.project / "worked"
        return path.read_text() if path.exists() else ""


def call(cli: str, name: object) -> ToolCall:
    """Return a call of a CLI's shell that appends a name to the file `worked`."""
    return shell(cli, step(name))


def shell(cli: str, command: str) -> ToolCall:
    return {
        "claude": ToolCall("Bash", {"command": command, "description": "as the test says"}),
        "codex": ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000}),
        "gemini": ToolCall("run_shell_command", {"command": command}),
    }[cli]


def refuse(cli: str, seconds: float = LONG) -> Fail:
    """Return a usage limit that resets in some seconds, in the words of each API."""
    at = int(time.time() + seconds)
    if cli == "codex":
        return openai.usage_limit(at, int(seconds))
    if cli == "gemini":
        return gemini.out_of_quota(seconds)
    return replace(anthropic.RATE_LIMITED, message=f"Claude usage limit reached|{at}")
