"""The agent CLIs in a person's terminal: they get their task, and the terminal is theirs."""

import contextlib
import json
import re
import sys
import uuid

import pytest

from desk import Desk
from loopback.sandbox import KEY
from loopback.script import Forever, Text

AGENT = """
import contextlib, json, os, sys
from pathlib import Path
from rekindle.documents.launches.launch_types import LaunchSpec, ProcessResult
from rekindle.plugins import Harnesses
from rekindle.system.terminal.pty_process import TerminalProcesses

name, given = sys.argv[1], json.loads(sys.argv[2])
harness = Harnesses()[name]
hook = (sys.executable, "-I", "-S", "-c", given.pop("hook"))
start = LaunchSpec(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()},
              hook=hook, scratch=os.environ["TMPDIR"], interactive=True)
command = harness.command(start)
for file, text in command.files.items():
    Path(start.scratch, file).write_text(text)
child = TerminalProcesses().start(
    command.argv, prompt="", environment={**os.environ, **command.environment}, folder=".")
with contextlib.closing(child.follow(0.25)) as ticks:
    for _ in ticks:
        pass
ended = ProcessResult(code=child.code, session=start.session, resumes=start.resumes,
              errors=child.errors, interactive=True)
found = harness.classify(ended)
print(f"[{child.code}, {found.kind}: {found.words}]", flush=True)
"""
HOOK = "import sys, pathlib; pathlib.Path('hooked').open('a').write(sys.argv[2] + '\\n')"
"""The hook that keeps the events; ours gets its path as the second argument."""
ALONE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"', "sh"]
"""Processes in their own namespace, which end with its first process."""
CTRL_C, CTRL_Z = b"\x03", b"\x1a"
RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}".encode()


@pytest.fixture
def sit(network):
    """Start a CLI in a terminal with the command of its harness."""
    with contextlib.ExitStack() as seats:

        def begin(cli, harness, *, size=(100, 30), **start):
            argv = [sys.executable, "-c", AGENT, harness, json.dumps({"hook": HOOK, **start})]
            env = cli.environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
            desk = Desk(network.argv([*ALONE, *argv]), env=env, cwd=cli.project, size=size)
            return seats.enter_context(desk)

        yield begin


@pytest.fixture
def at_home(claude):
    """Prepare Claude Code as already used once: it asks none of its first questions."""
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]]},
        "projects": {str(claude.project): {"hasTrustDialogAccepted": True}},
    }
    (claude.home / ".claude.json").write_text(json.dumps(known))
    return claude


def was_asked(model, *words):
    """Return whether all of this was said to the model in one conversation, by a person or by us.

    A program in a terminal also makes other requests.
    """
    return any(
        set(words) <= {part.text for part in request.parts if part.role == "user"}
        for request in model.log.main
    )


def hooked(cli):
    return (cli.project / "hooked").read_text().split()


def leave(desk):
    """Press Ctrl-C twice; the first may still interrupt the end of a turn."""
    for _ in range(5):
        desk.type(CTRL_C)
        with contextlib.suppress(TimeoutError):
            desk.wait_for("again to exit", timeout=5)
            break
    desk.type(CTRL_C)


def test_claude_code_has_the_terminal(sit, at_home, model):
    """It gets its task, answers, has the size of the window, and is left like any program."""
    model.play(Forever(Text("zebras answer")))
    session = str(uuid.uuid4())
    desk = sit(at_home, "claude-code", session=session, prompt="Ship the parser.", size=(100, 30))
    desk.wait_for("zebras")
    assert was_asked(model, "Ship the parser.")
    assert RULE * 100 in desk.shown
    assert RULE * 101 not in desk.shown
    desk.resize(71, 25)
    desk.wait_for(re.compile(rb"(?<!%b)(%b){71}(?!%b)" % (RULE, RULE, RULE)))
    leave(desk)
    desk.wait_for("[0, clean: closed by its user]")
    assert desk.hear() == {"code": 0}
    assert desk.modes == desk.modes_before
    assert hooked(at_home) == ["SessionStart:startup", "UserPromptSubmit", "SessionEnd"]
    assert at_home.transcript(session).exists()


def test_claude_code_is_stopped_and_brought_back_by_its_shell(sit, at_home, model):
    """Ctrl-Z and `fg` work as without us: it draws itself again in the window's new size."""
    model.play(Forever(Text("zebras answer")))
    desk = sit(at_home, "claude-code", session=str(uuid.uuid4()), prompt="Ship the parser.")
    desk.wait_for("zebras")
    desk.type(CTRL_Z)
    assert "stopped" in desk.hear()
    assert desk.modes == desk.modes_before
    desk.resize(71, 25)
    desk.foreground()
    desk.wait_for(re.compile(rb"(?<!%b)(%b){71}(?!%b)" % (RULE, RULE, RULE)))
    assert desk.is_raw
    leave(desk)
    desk.wait_for("[0, clean")


def test_claude_code_resumes_its_session(sit, at_home, model):
    """`/exit` leaves it too; a clean exit is told apart from a crash."""
    model.play(Forever(Text("zebras answer")))
    session = str(uuid.uuid4())
    desk = sit(at_home, "claude-code", session=session, prompt="/clear is what to look at.")
    desk.wait_for("zebras")
    desk.type("/exit")
    desk.wait_for("exit")
    desk.type("\r")
    desk.wait_for("[0, clean")
    model.play(Forever(Text("lions answer")))
    desk = sit(at_home, "claude-code", session=session, resumes=True, prompt="-v is next.")
    desk.wait_for("lions")
    assert was_asked(model, "The task: /clear is what to look at.", "The task: -v is next.")
    desk = sit(at_home, "claude-code", session=str(uuid.uuid4()), resumes=True, prompt="Go on.")
    desk.wait_for("[1, resume-failed: the session no longer exists")


def test_claude_code_keeps_the_person_s_own_status_line(sit, at_home, model):
    """The settings that we pass have none, because one would replace the person's."""
    model.play(Forever(Text("zebras answer")))
    (at_home.home / ".claude").mkdir(exist_ok=True)
    line = {"type": "command", "command": "cat > told-to-the-line; echo my-own-line"}
    settings = at_home.home / ".claude/settings.json"
    settings.write_text(json.dumps({"statusLine": line}))
    session = str(uuid.uuid4())
    desk = sit(at_home, "claude-code", session=session, prompt="Ship the parser.")
    desk.wait_for("my-own-line")
    told = json.loads((at_home.project / "told-to-the-line").read_text())
    assert told["session_id"] == session
    assert "SessionStart:startup" in hooked(at_home)


def test_codex_has_the_terminal(sit, codex, openai_model):
    """It has the hooks of its launch, and the session that it named itself."""
    settings = codex.settings / "config.toml"
    seen = '[notice.model_migrations]\n"gpt-5.5" = "gpt-6-sol"\n'
    trusted = f'[projects."{codex.project}"]\ntrust_level = "trusted"\n'
    codex.configure(f"{settings.read_text()}\n{seen}\n{trusted}")
    openai_model.play(Forever(Text("zebras answer")))
    desk = sit(codex, "codex", session="", prompt="/clear is what to look at.")
    desk.wait_for("zebras")
    desk.wait_for("state=done")  # otherwise Ctrl-C would interrupt the rest of its turn
    assert was_asked(openai_model, "The task: /clear is what to look at.")
    assert hooked(codex) == ["SessionStart:startup", "UserPromptSubmit"]
    desk.type(CTRL_C)
    desk.wait_for("[0, clean: closed by its user]")
    assert desk.hear() == {"code": 0}
    assert desk.modes == desk.modes_before
    (rollout,) = (codex.settings / "sessions").glob("*/*/*/rollout-*.jsonl")
    openai_model.play(Forever(Text("lions answer")))
    desk = sit(codex, "codex", session=rollout.stem[-36:], resumes=True, prompt="-v is next.")
    desk.wait_for("lions")
    assert was_asked(openai_model, "The task: /clear is what to look at.", "The task: -v is next.")


def test_gemini_cli_has_the_terminal(sit, gemini, gemini_model):
    """It works without hooks of the launch, which it does not support."""
    gemini_model.play(Forever(Text("zebras answer")))
    session = str(uuid.uuid4())
    desk = sit(gemini, "gemini", session=session, prompt="/clear is what to look at.")
    desk.wait_for("zebras")
    assert was_asked(gemini_model, "The task: /clear is what to look at.")
    leave(desk)
    desk.wait_for("[0, clean: closed by its user]")
    assert desk.hear() == {"code": 0}
    assert desk.modes == desk.modes_before
    gemini_model.play(Forever(Text("lions answer")))
    desk = sit(gemini, "gemini", session=session, resumes=True, prompt="-v is next.")
    desk.wait_for("lions")
    assert was_asked(gemini_model, "The task: /clear is what to look at.", "The task: -v is next.")
