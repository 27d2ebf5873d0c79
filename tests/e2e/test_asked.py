"""The real CLIs answer one question: without tools that write, hooks, or anything stored."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.sandbox import RELAY, SERVER, TASK, Rekindle
from e2e.test_codex import trusting as trusted_by_codex
from e2e.test_gemini import trusting as trusted_by_gemini
from loopback.gemini_cli import MODEL
from loopback.model import Model
from loopback.script import Fail, Forever, Parallel, Text, ToolCall
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1, until: ["true"]}}
"""
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"gist": {"type": "string"}},
        "required": ["gist"],
        "additionalProperties": False,
    }
)
GIST = {"gist": "it works"}
LONG = "".join(f"{number}. étape $HOME `id` --resume ```\n" for number in range(6_000))
INSTRUCTIONS = "--help You are the keeper of the light: \"quoted\", 'é', ${HOME}."
PATCH = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n"


@dataclass(frozen=True)
class Asked:
    """A CLI that can be asked, beside a project with an agent of that CLI."""

    harness: Any
    rekindle: Rekindle
    model: Model
    offered: frozenset[str]
    """The tools that cannot be disabled."""
    writing: tuple[ToolCall, ...]
    kept: str
    """The folder of its sessions in its home."""

    def __call__(
        self, prompt: str, *, folder: Path | None = None, code: int = 0, **more: Any
    ) -> OneShotAnswer | None:
        cli = self.rekindle.cli
        scratch = cli.home / "scratch"
        scratch.mkdir(exist_ok=True)
        program = (str(cli.bin / self.harness.HOOK_FILES.program),)
        made = self.harness.ask(OneShotQuestion(scratch=str(scratch), program=program, **more))
        for name, text in made.files.items():
            (scratch / name).write_text(text)
        started = self.rekindle.place.start(
            made.argv,
            env=cli.environment(**made.environment),
            cwd=folder or cli.project,
            stdin=prompt,
        )
        assert started.wait() == code, started.out + started.err
        answer: OneShotAnswer | None = self.harness.answer(started.out.encode().splitlines())
        return answer

    @property
    def project(self) -> dict[str, bytes]:
        """Return every file of the project except our own store."""
        root = self.rekindle.project
        found = (path for path in root.rglob("*") if path.is_file())
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in found
            if ".rekindle" not in path.parts
        }

    @property
    def sessions(self) -> list[Path]:
        return list(self.rekindle.cli.home.glob(self.kept))

    def trusting(self) -> None:
        """Have the person trust the existing hooks; Codex also notifies a program of hers."""
        if self.harness is codex_harness:
            trusted_by_codex(self.rekindle)
            config = self.rekindle.cli.settings / "config.toml"
            told = json.dumps(["touch", str(self.persons)])
            config.write_text(f"notify = {told}\n{config.read_text()}")
        if self.harness is gemini_harness:
            trusted_by_gemini(self.rekindle)

    @property
    def persons(self) -> Path:
        """Return the file that the person's own hook creates."""
        return Path(self.rekindle.cli.home) / "persons-hook"

    def hook_of_the_person(self) -> None:
        cli, touched = self.rekindle.cli, ["touch", str(self.persons)]
        if self.harness is claude_harness:
            (cli.home / ".claude").mkdir()
            cli.settings({"UserPromptSubmit": touched}).rename(cli.home / ".claude/settings.json")
        else:
            event = "UserPromptSubmit" if self.harness is codex_harness else "BeforeAgent"
            cli.hooks({event: touched})


def tools(request: Any) -> set[str]:
    """Return the tools that the model is offered."""
    found = request.body.get("tools") or []
    declared = [each for one in found for each in one.get("functionDeclarations", [one])]
    return {one.get("name", one.get("type")) for one in declared}


@pytest.fixture(params=["claude-code", "codex", "gemini"])
def asked(request, place):
    """Yield each of the three CLIs in turn."""
    name = request.param
    fixtures = {
        "claude-code": ("claude", "model"),
        "codex": ("codex", "openai_model"),
        "gemini": ("gemini", "gemini_model"),
    }
    cli, model = map(request.getfixturevalue, fixtures[name])
    (cli.project / "rekindle.yaml").write_text(MANIFEST.format(harness=name))
    (cli.project / "PROMPT.md").write_text(TASK)
    server = {"command": sys.executable, "args": ["-I", str(SERVER)]}
    match name:
        case "claude-code":
            (cli.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"box": server}}))
            headless = [str(cli.program), "-p"]
            calls = (
                ToolCall("Bash", {"command": "touch made", "description": "d"}),
                ToolCall("Write", {"file_path": str(cli.project / "made"), "content": "x"}),
                ToolCall("mcp__box__put", {"path": "made"}),
            )
            made = (claude_harness, frozenset(), calls, ".claude/projects/**/*.jsonl")
        case "codex":
            headless = [str(cli.program), "exec", "--json", "--skip-git-repo-check"]
            calls = (
                ToolCall("exec_command", {"cmd": "touch made"}),
                ToolCall("apply_patch", {"input": PATCH}),
                ToolCall("mcp__box__put", {"path": "made"}),
            )
            left = frozenset({"request_user_input", "apply_patch"})
            made = (codex_harness, left, calls, ".codex/sessions/**/*.jsonl")
        case _:
            cli.configure(model={"name": MODEL}, mcpServers={"box": server})
            headless = list(cli.headless)
            calls = (
                ToolCall("run_shell_command", {"command": "touch made"}),
                ToolCall("write_file", {"file_path": "made", "content": "x"}),
                ToolCall("mcp_box_put", {"path": "made"}),
            )
            made = (gemini_harness, frozenset(), calls, ".gemini/tmp/*/chats/*.jsonl")
    harness, offered, writing, kept = made
    rekindle = Rekindle(cli, place, headless)
    return Asked(harness, rekindle, model, offered, writing, kept)


def test_a_question_is_answered(asked):
    """Prompt and instructions arrive whole, no tool is offered, and the project stays unchanged."""
    asked.model.play(Text("it works"))
    before = asked.project
    answer = asked(LONG, instructions=INSTRUCTIONS)
    assert len(LONG) > 200_000
    (request,) = asked.model.log.main
    assert "".join(request.prompts).strip() == LONG.strip()
    assert any(INSTRUCTIONS in each for each in request.injected)
    assert tools(request) == asked.offered
    assert asked.project == before
    assert answer is not None
    assert answer.text == "it works"
    assert answer.tokens >= 110
    assert (answer.usd is not None) is asked.harness.CAN.reports_money
    # Gemini CLI always stores its session.
    assert len(asked.sessions) == (asked.harness is gemini_harness)


def test_an_answer_has_the_form_that_was_asked_for(asked):
    """A CLI that can enforce a schema does so: by a tool of its own, or by the API."""
    text = Text(json.dumps(GIST))
    asked.model.play(
        ToolCall("StructuredOutput", GIST) if asked.harness is claude_harness else text
    )
    answer = asked("What is the gist?", schema=SCHEMA)
    assert answer is not None
    assert json.loads(answer.text) == GIST
    request = asked.model.log.main[0]
    if asked.harness is claude_harness:
        assert tools(request) == {"StructuredOutput"}
    if asked.harness is codex_harness:
        assert request.body["text"]["format"]["schema"] == json.loads(SCHEMA)


def test_a_model_that_would_write_changes_nothing(asked):
    """It calls tools that it was not offered: a shell, a file tool, a server of the person."""
    if asked.harness is codex_harness:
        server = f'\n[mcp_servers.box]\ncommand = "{sys.executable}"\nargs = ["-I", "{SERVER}"]\n'
        config = asked.rekindle.cli.settings / "config.toml"
        config.write_text(config.read_text() + server)
    asked.model.play(*asked.writing, Parallel(asked.writing), Forever(Text("I could not")))
    before = asked.project
    answer = asked("hello", instructions="Write!")
    assert asked.project == before
    assert answer == OneShotAnswer("I could not", answer.usd, answer.tokens)
    assert len(asked.model.log.main[-1].results) == 2 * len(asked.writing)


def test_our_hooks_do_not_report_a_question(asked):
    """Installed for the person and for the project, they report a session and no question."""
    rekindle = asked.rekindle
    asked.hook_of_the_person()
    (rekindle.project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    for level in ("project", "user"):
        rekindle("hooks", "install", "--for", level, "--harness", asked.harness.NAME)
    asked.trusting()
    asked.model.play(Forever(Text("it works")))
    rekindle.fold()
    before = rekindle.events()
    for prompt in (LONG, "hello"):
        assert asked(prompt) is not None
    rekindle.fold()
    assert rekindle.events() == before
    assert RELAY.strip() not in asked.model.log.main[-1].text
    # No other hook runs either, except those that the CLI cannot disable.
    assert asked.persons.exists() == (asked.harness is gemini_harness)
    assert rekindle.by_hand("hello").wait() == 0
    rekindle.fold()
    assert "session.started" in {one["kind"] for one in rekindle.events()[len(before) :]}
    assert asked.persons.exists()


def test_a_file_that_the_prompt_names_is_not_read(asked):
    """No file is read in the folder or outside; Gemini CLI reads those of its folder."""
    cli = asked.rekindle.cli
    for folder in (cli.project, cli.home):
        (folder / "secret").write_text("the hidden word")
    empty = cli.home / "empty"
    empty.mkdir()
    asked.model.play(Forever(Text("it works")))
    prompt = f"See @secret, @./secret, @{cli.home}/secret, @../secret and @~/secret."
    assert asked(prompt, folder=empty if asked.harness is gemini_harness else None) is not None
    (request,) = asked.model.log.main
    assert "the hidden word" not in request.text
    assert request.prompts == [prompt]


def test_a_question_may_be_allowed_to_read(asked):
    """It reads in its folder and still cannot write; Codex reads only by its shell."""
    persona = Persona(permissions=Permissions(allowed_tools=["Read", "Glob"]))
    if asked.harness is codex_harness:
        assert asked("hello", persona=persona) is not None
        assert tools(asked.model.log.main[0]) == asked.offered
        return
    name = "Read" if asked.harness is claude_harness else "read_file"
    cli = asked.rekindle.cli
    (cli.home / "secret").write_text("the hidden word")
    read = [ToolCall(name, {"file_path": str(path)}) for path in (cli.project / "PROMPT.md",)]
    read.append(ToolCall(name, {"file_path": str(cli.home / "secret")}))
    asked.model.play(Parallel((*read, *asked.writing)), Text("I have read it"))
    before = asked.project
    answer = asked("hello", persona=persona)
    assert answer is not None
    assert answer.text == "I have read it"
    last = asked.model.log.main[-1]
    assert any("Ship the parser" in result.text for result in last.results)
    assert "the hidden word" not in last.text
    assert asked.project == before


def test_a_question_that_is_refused_has_no_answer(asked):
    """The CLI's own message is not taken for an answer."""
    asked.model.play(Forever(Fail(400, "invalid_request_error", "not this")))
    codes = {claude_harness: 1, codex_harness: 1, gemini_harness: 144}
    assert asked("hello", code=codes[asked.harness]) is None
