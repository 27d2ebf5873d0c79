"""An agent of a real CLI whose window fills as the test says, with observations of its handoffs.

Every call creates one file when it begins and another when it is over, which shows a call that was
cut.
"""

import json
import shlex
import subprocess
import sys
from typing import Any

from e2e.sandbox import TASK, Rekindle
from e2e.test_codex import SETTINGS
from e2e.test_gemini import trusting
from loopback import anthropic, codex_cli, gemini, gemini_cli, openai
from loopback.script import ToolCall, Usage

MARK = "# Relay Checkpoint"
MECHANICAL = "relay: {summarizer: mechanical}"
MANIFEST = """\
version: 1
agents:
  trades:
    harness: {harness}
    prompt: PROMPT.md
    cycles: 1
    until: ["true"]
    {more}
    handover: {{compaction: {{trigger: "token_limit_{at}%"}}}}
runtime: {{{runtime}}}
personas:
  {summarizer}
  default: {permissions}
"""
STEP = """\
import pathlib, sys, time
name, seconds, code = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
pathlib.Path("began-" + name).touch()
time.sleep(seconds)
with pathlib.Path("worked").open("a") as file:
    file.write(name)
pathlib.Path("ended-" + name).touch()
sys.exit(code)
"""


def step(name: object, seconds: float = 0.0, code: int = 0) -> str:
    """Return a command that marks its start and its end."""
    return shlex.join([sys.executable, "step.py", str(name), str(seconds), str(code)])


class Handing:
    """One CLI with its agent."""

    HARNESS, MODEL, WINDOW, SUBAGENT = "", "", 0, ""
    PERMISSIONS, MORE = "{}", ""
    REPLIES = 0
    """The number of answers before the model is stopped; it holds the last one back."""

    def __init__(self, cli: Any, place: Any, model: Any) -> None:
        self.cli, self.model, self.project = cli, model, cli.project
        self.rekindle = Rekindle(cli, place)
        self.window = self.WINDOW

    def begin(
        self,
        at: int,
        *,
        named: str = "",
        window: int = 0,
        runtime: str = MECHANICAL,
        summarizer: str = "",
    ) -> "Handing":
        self.window = window or self.WINDOW
        self.write(at, runtime=runtime, summarizer=summarizer)
        (self.project / "PROMPT.md").write_text(TASK)
        (self.project / "step.py").write_text(STEP)
        (self.project / ".gitignore").write_text(
            ".rekindle\n.claude\n.gemini\nbegan-*\nended-*\nstep.py\nrekindle.yaml\n"
        )
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
            own = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
            subprocess.run(["git", *own, *words], cwd=self.project, check=True)
        self.set_up(named or self.MODEL)
        return self

    def write(self, at: int, *, runtime: str = MECHANICAL, summarizer: str = "") -> None:
        """Write the manifest and the task."""
        text = MANIFEST.format(
            harness=self.HARNESS,
            at=at,
            more=self.MORE,
            runtime=runtime,
            summarizer=summarizer,
            permissions=self.PERMISSIONS,
        )
        (self.project / "rekindle.yaml").write_text(text)

    def set_up(self, named: str) -> None:
        """Configure the CLI for the scripted model and our hooks."""
        raise NotImplementedError

    def filled(self, share: float) -> Usage:
        """Return the usage of a first turn that fills this share of the window."""
        return Usage(input=-int(-share * self.window // 100))

    def bash(self, command: str) -> ToolCall:
        raise NotImplementedError

    def asking(self, name: str) -> list[ToolCall]:
        """Return the calls that give a sub-agent work and wait for it."""
        raise NotImplementedError

    def call(self, name: object, share: float = 0, seconds: float = 0.0, code: int = 0) -> ToolCall:
        made = self.bash(step(name, seconds, code))
        return ToolCall(made.name, made.input, self.filled(share))

    def run(self, *words: str, code: int = 0) -> str:
        started = self.rekindle.start("run", "trades", *words)
        assert started.wait() == code, started.out + started.err
        return started.out + started.err

    @property
    def openings(self) -> list[Any]:
        """Return the first prompt of each session, without the questions for a summarizer."""
        told = [one for one in self.model.log.main if not one.results]
        return [one for one in told if "The sections of the" not in one.text]

    def assert_nothing_cut(self, *names: object) -> None:
        began = {path.name.removeprefix("began-") for path in self.project.glob("began-*")}
        ended = {path.name.removeprefix("ended-") for path in self.project.glob("ended-*")}
        assert began == ended == {str(name) for name in names}

    @property
    def checkpoints(self) -> list[str]:
        """Return all archived checkpoints in their order."""
        archive = self.project / ".rekindle/agents/trades/memories/archive"
        return [path.read_text() for path in sorted(archive.glob("checkpoint-*.md"))]


class HandingClaude(Handing):
    HARNESS, MODEL, WINDOW = "claude-code", "claude-sonnet-4-5", 200_000
    SUBAGENT = anthropic.SUBAGENT
    PERMISSIONS = "{permissions: {allowed_tools: [Bash, Agent]}}"

    def set_up(self, named: str) -> None:
        (self.project / ".claude").mkdir()
        (self.project / ".claude/settings.json").write_text(json.dumps({"model": named}))

    def filled(self, share: float) -> Usage:
        """Split the usage into the three counts that add up to it."""
        tokens = super().filled(share).input
        return Usage(input=100, cache_read=tokens - 107, cache_write=7)

    def bash(self, command: str) -> ToolCall:
        return ToolCall("Bash", {"command": command, "description": "as the test says"})

    def asking(self, name: str) -> list[ToolCall]:
        asked = {"description": "d", "prompt": name, "subagent_type": "general-purpose"}
        return [ToolCall("Agent", {**asked, "run_in_background": False})]


class HandingCodex(Handing):
    """The window size is the one that Codex reports, not the model's."""

    HARNESS, MODEL, WINDOW = "codex", codex_cli.MODEL, 258_400
    SUBAGENT = openai.HELPER
    REPLIES = 1

    def set_up(self, named: str) -> None:
        config = codex_cli.CONFIG.format(model=named, url=self.model.url)
        text = SETTINGS.format(config=config, project=self.project)
        self.cli.configure(text.replace("[features]", "[features]\nmulti_agent_v2 = true"))

    def filled(self, share: float) -> Usage:
        return Usage(input=super().filled(share).input - 10, output=10)

    def bash(self, command: str) -> ToolCall:
        return ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000})

    def asking(self, name: str) -> list[ToolCall]:
        asked = {"message": "look", "task_name": name}
        return [
            ToolCall("collaboration__spawn_agent", asked),
            ToolCall("collaboration__wait_agent", {"timeout_ms": 30_000}),
        ]


class HandingGemini(Handing):
    HARNESS, MODEL, WINDOW = "gemini", gemini_cli.MODEL, 1_048_576
    SUBAGENT = gemini.SUBAGENT
    # With a list of tools, its sub-agent would have none to report that it is done.
    MORE = 'command: ["gemini", "--approval-mode=yolo"]'

    def set_up(self, named: str) -> None:
        # Otherwise it would compact at half of its window.
        self.cli.configure(model={"name": named, "compressionThreshold": 1})
        self.rekindle("hooks", "install", "--for", "project")
        trusting(self.rekindle)

    def bash(self, command: str) -> ToolCall:
        return ToolCall("run_shell_command", {"command": command})

    def asking(self, name: str) -> list[ToolCall]:
        return [ToolCall("invoke_agent", {"agent_name": "generalist", "prompt": name})]


KINDS = {
    "claude": (HandingClaude, "model"),
    "codex": (HandingCodex, "openai_model"),
    "gemini": (HandingGemini, "gemini_model"),
}
