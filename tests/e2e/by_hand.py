"""A real CLI in a terminal of a person who knows nothing of a supervisor."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.sandbox import Rekindle
from loopback import codex_cli
from loopback.place import Started
from loopback.sandbox import KEY
from torture.clis import KINDS

FIXTURES = {
    "claude-code": ("claude", "model"),
    "codex": ("codex", "openai_model"),
    "gemini": ("gemini", "gemini_model"),
}
ONE_IN_CI = [
    "codex",
    *(pytest.param(name, marks=pytest.mark.torture) for name in ("claude-code", "gemini")),
]
"""The CLIs as parameters; CI plays the first."""
_TERMINAL = """
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)
"""
_CODEX = """\
sandbox_mode = "danger-full-access"
{config}
[features]
plugin_discovery_prefetch = false
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
[projects."{project}"]
trust_level = "trusted"
"""


class ByHand:
    def __init__(self, name: str, request: Any, place: Any) -> None:
        self.cli, self.model = map(request.getfixturevalue, FIXTURES[name])
        self.name, self.place, self.project = name, place, self.cli.project
        self.rekindle = Rekindle(self.cli, place)
        if name == "claude-code":
            known = {
                "hasCompletedOnboarding": True,
                "customApiKeyResponses": {"approved": [KEY[-20:]]},
                "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
            }
            (self.cli.home / ".claude.json").write_text(json.dumps(known))
        elif name == "codex":
            config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=self.model.url)
            self.cli.configure(_CODEX.format(config=config, project=self.project))
        else:
            auth = {"selectedType": "gemini-api-key"}
            self.cli.configure(security={"auth": auth, "folderTrust": {"enabled": False}})

    def sit(self, prompt: str) -> Started:
        """Start the CLI in a terminal, with a first prompt."""
        words = {
            "claude-code": [str(self.cli.program), "--allowedTools=Bash", "--", prompt],
            "codex": ["codex", "--dangerously-bypass-approvals-and-sandbox", prompt],
            "gemini": ["gemini", "--approval-mode", "yolo", "-i", prompt],
        }[self.name]
        env = self.cli.environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
        argv = [sys.executable, "-I", "-c", _TERMINAL, *words]
        return self.place.start(argv, env=env, cwd=self.project)

    def shell(self, line: str) -> Any:
        return KINDS[self.name].shell(line)

    def wait_for(self, found: Any) -> Any:
        return self.place.wait_for(found, 120)

    def transcripts(self) -> str:
        """Return all that the CLI has stored of its sessions."""
        return "".join(path.read_text() for path in self._list_transcripts())

    def sessions(self) -> list[str]:
        """Return the ids of all sessions that the CLI has stored."""
        paths = self._list_transcripts()
        if self.name == "gemini":
            return [json.loads(path.read_text().splitlines()[0])["sessionId"] for path in paths]
        return [path.stem[-36:] for path in paths]

    def _list_transcripts(self) -> list[Path]:
        folder = self.cli.home / KINDS[self.name].folder
        pattern = {
            "claude-code": "projects/*/*.jsonl",
            "codex": "sessions/*/*/*/rollout-*.jsonl",
            "gemini": "tmp/*/chats/session-*.jsonl",
        }[self.name]
        return sorted(folder.glob(pattern))

    def launches(self) -> list[dict[str, Any]]:
        return self.rekindle.events("launch.started")
