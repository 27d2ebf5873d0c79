"""Codex in a sandbox."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loopback.model import Model
from loopback.place import Place
from loopback.sandbox import KEY, Run, Sandbox

MODEL: Final = "gpt-5.5"
HEADLESS: Final = (
    *("exec", "--json", "--skip-git-repo-check"),
    *("--disable", "plugin_discovery_prefetch"),  # offline it would wait for five seconds
    "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-bypass-hook-trust",  # without it, hooks that no person has approved do not run
)
CONFIG: Final = """\
model = "{model}"
model_provider = "loopback"

[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false
"""
"""Without the last line a run ends five seconds late, because it waits for the network."""


class CodexRun(Run):
    @property
    def session(self) -> str:
        """Return the id of the opened thread, or an empty text."""
        return next((str(event["thread_id"]) for event in self.of("thread.started")), "")

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Return the completed items of a kind: messages, commands, errors."""
        done = [event["item"] for event in self.of("item.completed")]
        return [item for item in done if item["type"] == kind]

    @property
    def said(self) -> list[str]:
        return [item["text"] for item in self.items("agent_message")]

    @property
    def failure(self) -> str:
        """Return why the turn failed."""
        return next((str(event["error"]["message"]) for event in self.of("turn.failed")), "")


class CodexSandbox(Sandbox[CodexRun]):
    kind = CodexRun

    def __init__(self, program: Path, *, model: Model, place: Place, root: Path) -> None:
        super().__init__(program, model=model, place=place, root=root)
        (self.bin / "codex").symlink_to(program)
        self.settings = self.home / ".codex"
        self.settings.mkdir()
        self.configure(CONFIG.format(model=MODEL, url=model.url))

    @property
    def headless(self) -> tuple[str, ...]:
        return (str(self.program), *HEADLESS)

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(**{"OPENAI_API_KEY": KEY, **more})

    def configure(self, text: str) -> None:
        (self.settings / "config.toml").write_text(text)

    def resuming(self, session: str) -> tuple[str, ...]:
        return ("resume", session, "-")

    def hooks(self, hooks: Mapping[str, Sequence[str]]) -> Path:
        path = self.settings / "hooks.json"
        hooked = json.loads(path.read_text())["hooks"] if path.exists() else {}
        for event, argv in hooks.items():
            # At a session's end it would cut a longer timeout to three seconds.
            command = {"type": "command", "command": shlex.join(argv), "timeout": 3}
            hooked.setdefault(event, []).append({"hooks": [command]})
        path.write_text(json.dumps({"hooks": hooked}))
        return path

    def transcript(self, session: str) -> Path:
        (found,) = (self.settings / "sessions").glob(f"*/*/*/rollout-*-{session}.jsonl")
        return found

    def beside(self, session: str) -> list[Path]:
        """Return the sub-agents' rollouts, whose first line names their session."""
        found = sorted((self.settings / "sessions").glob("*/*/*/rollout-*.jsonl"))
        return [path for path in found if _parent(path) == session]


def _parent(rollout: Path) -> str:
    with rollout.open(errors="replace") as opened:
        first = opened.readline()
    try:
        return str(json.loads(first)["payload"].get("parent_thread_id", ""))
    except (ValueError, LookupError):
        return ""
