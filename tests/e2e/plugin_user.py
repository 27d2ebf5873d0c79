"""A person who follows docs/guides/plugins.md with a real CLI and an empty home."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

from documented import blocks
from loopback import gemini_cli
from torture.clis import KINDS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/plugins.md").read_text()
FIXTURES = {
    "claude": ("claude", "model"),
    "codex": ("codex", "openai_model"),
    "gemini": ("gemini", "gemini_model"),
}
HARNESSES = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}
HEADLESS = {
    "claude": (
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--allowedTools=Bash,mcp__plugin_rekindle_rekindle",
    ),
    "codex": (
        *("exec", "--json", "--skip-git-repo-check"),
        *("--disable", "plugin_discovery_prefetch"),  # offline it would wait for five seconds
        "--dangerously-bypass-approvals-and-sandbox",
    ),
    "gemini": gemini_cli.HEADLESS,
}
"""How a test starts the CLI without a terminal. None of these trusts a hook."""
ON_A_TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"


def read_block(word: str) -> list[str]:
    """Return the commands of the guide's block for a CLI."""
    [body] = [body for kind, words, body in blocks(GUIDE) if kind == "sh" and words == [word]]
    return body.splitlines()


class PluginUser:
    def __init__(self, name, request, place, programs: Path) -> None:
        """Give the CLI's sandbox a git repository, and the programs of a folder."""
        sandbox, self.model = map(request.getfixturevalue, FIXTURES[name])
        self.name, self.cli, self.place, self.home = name, sandbox, place, sandbox.home
        self.project = sandbox.project / "parser"
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        for program in programs.iterdir():
            (sandbox.bin / program.name).symlink_to(program)

    def start(self, *argv: str, stdin: str = "", **environment: str):
        path = f"{self.home}/.local/bin:{self.cli.environment()['PATH']}"
        whole = self.cli.environment() | {"PATH": path, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
        # Nothing is trusted that the person has not accepted.
        whole |= {"REKINDLE_TRUST": "", **environment}
        return self.place.start(argv, env=whole, cwd=self.project, stdin=stdin)

    def run(self, line: str, *, keys: str = "", code: int = 0, **environment: str) -> str:
        """Run a command line, on a terminal if the person presses keys."""
        argv = shlex.split(line)
        if keys:
            argv = [sys.executable, "-I", "-c", ON_A_TERMINAL, *argv]
        started = self.start("/usr/bin/env", *argv, stdin=keys, **environment)
        assert started.wait(180) == code, started.out + started.err
        return started.out + started.err

    def start_session(self, prompt: str, **environment: str):
        program = [str(self.cli.program)]
        if self.name == "gemini":
            program = [self.cli.headless[0], *program]
        return self.start(*program, *HEADLESS[self.name], stdin=prompt, **environment)

    def long_call(self):
        """Return a tool call that tells when it has begun, and would take ten minutes."""
        return KINDS[HARNESSES[self.name]].shell("touch working; sleep 600")

    def kill_in_tool_call(self, session) -> None:
        self.place.wait_for(lambda: (self.project / "working").exists() or None)
        session.signal(signal.SIGKILL)
        assert session.wait() == -signal.SIGKILL

    def write_settings(self) -> None:
        """Give the CLI settings in a format that it would not write itself."""
        if self.name == "claude":
            (self.home / ".claude").mkdir()
            (self.home / ".claude/settings.json").write_text('{"theme":   "dark",\n\n "a": 1}')
        elif self.name == "codex":
            path = self.home / ".codex/config.toml"
            # Codex adds this itself when a session starts in a git repository.
            trust = f'[projects."{self.project}"]\ntrust_level  =  "trusted"  # mine\n'
            path.write_text(f"{path.read_text()}\n{trust}")

    def read_settings(self) -> dict[str, bytes]:
        """Return the CLI's settings, but not its caches, logs, keys and sessions."""
        folder = self.home / KINDS[HARNESSES[self.name]].folder
        patterns = ("*.json", "*.toml", "extensions/*")
        paths = [path for pattern in patterns for path in folder.glob(pattern) if path.is_file()]
        own = {"projects.json", "gemini-credentials.json", "mcp-needs-auth-cache.json"}
        return {path.name: path.read_bytes() for path in paths if path.name not in own}

    def told(self, number: int) -> str:
        """Return all that the model was told at first in a session."""
        return self.model.log.main[number].text
