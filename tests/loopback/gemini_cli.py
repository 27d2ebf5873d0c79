"""Gemini CLI in a sandbox."""

import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loopback.model import Model
from loopback.place import Place
from loopback.sandbox import KEY, Run, Sandbox

MODEL: Final = "gemini-2.5-flash"
HEADLESS: Final = (
    *("-m", MODEL, "-o", "stream-json"),
    *("--skip-trust", "--approval-mode", "yolo"),
)
SETTINGS: Final = {
    "general": {"maxAttempts": 1},  # ten by default, with minutes of waiting
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}},
}


class GeminiRun(Run):
    @property
    def session(self) -> str:
        """Return the id of the opened session, or an empty text."""
        return next((str(event["session_id"]) for event in self.of("init")), "")

    @property
    def said(self) -> str:
        """Return all text of the model."""
        told = [event for event in self.of("message") if event["role"] == "assistant"]
        return "".join(event["content"] for event in told)

    @property
    def result(self) -> dict[str, Any]:
        """Return the result; a run that was ended has none."""
        assert self.of("result"), f"no result; stdout {self.stdout!r}, stderr {self.stderr!r}"
        return self.of("result")[-1]


class GeminiSandbox(Sandbox[GeminiRun]):
    kind = GeminiRun

    def __init__(self, program: Path, *, model: Model, place: Place, root: Path) -> None:
        super().__init__(program, model=model, place=place, root=root)
        node = shutil.which("node")
        assert node is not None, "npm installed it, and comes with node"
        self._node = node
        (self.bin / "gemini").symlink_to(program)
        (self.bin / "node").symlink_to(node)  # its first line asks for it
        self.settings = self.home / ".gemini"
        self.settings.mkdir()
        self.configure()

    @property
    def headless(self) -> tuple[str, ...]:
        return (self._node, str(self.program), *HEADLESS)

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(
            **{
                "GEMINI_API_KEY": KEY,
                "GOOGLE_GEMINI_BASE_URL": self.model.url,
                "GEMINI_CLI_NO_RELAUNCH": "true",  # else its parent would get the signals
                **more,
            }
        )

    def configure(self, **more: Any) -> Path:
        """Write its settings, with the additions of a test."""
        path = self.settings / "settings.json"
        before = json.loads(path.read_text()) if path.exists() else SETTINGS
        path.write_text(json.dumps(before | more))
        return path

    def hooks(self, hooks: Mapping[str, Sequence[str]]) -> Path:
        hooked = json.loads(self.configure().read_text()).get("hooks", {})
        for event, argv in hooks.items():
            # In milliseconds, unlike in any other CLI.
            command = {"type": "command", "command": shlex.join(argv), "timeout": 30_000}
            hooked.setdefault(event, []).append({"hooks": [command]})
        return self.configure(hooks=hooked)

    def beginning(self, session: str) -> tuple[str, ...]:
        return ("--session-id", session)

    def resuming(self, session: str) -> tuple[str, ...]:
        return ("--resume", session)

    def transcript(self, session: str) -> Path:
        chats = (self.settings / "tmp").glob(f"*/chats/session-*-{session[:8]}.jsonl")
        (found,) = chats
        return found

    def beside(self, session: str) -> list[Path]:
        return sorted((self.settings / "tmp").glob(f"*/chats/{session}/*.jsonl"))
