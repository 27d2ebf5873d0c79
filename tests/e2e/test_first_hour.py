"""The first hour of a new user with the real CLIs: the files of `init`, and refused calls."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.sandbox import TASK, Rekindle
from loopback import codex_cli
from loopback.script import Text, ToolCall
from plugin import environment
from torture.clis import _CODEX, NAMES, Cli

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
FIXTURES = {
    "claude-code": ("claude", "model"),
    "codex": ("codex", "openai_model"),
    "gemini": ("gemini", "gemini_model"),
}
UNPERMITTED = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1, until: ["test", "-e", "parser.py"]}}
personas:
"""
SUMMARIZER = """\
  summarizer: {adapter: command, command: ["false"]}
"""


class FirstHour:
    """An empty folder, our own program and a real CLI."""

    def __init__(self, name, request, place):
        sandbox, model = map(request.getfixturevalue, FIXTURES[name])
        self.name, self.model, self.project = name, model, sandbox.project
        self.cli = Cli(name, sandbox, model, place)
        self.rekindle = Rekindle(sandbox, place)
        if name == "codex":  # a new user's settings do not permit writes
            config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=model.url)
            text = _CODEX.format(config=config).replace("danger-full-access", "read-only")
            sandbox.configure(text)

    def write_call(self, name, content="parse = str.split\n"):
        """Return the call by which this CLI writes a file."""
        path = str(self.project / name)
        match self.name:
            case "claude-code":
                return ToolCall("Write", {"file_path": path, "content": content})
            case "gemini":
                return ToolCall("write_file", {"file_path": path, "content": content})
            case _:
                return self.cli.kind.shell(f"printf %s {shlex.quote(content)} > {name}")

    def log(self, kind):
        """Return the events of a kind in the log; our own commands would fold it first."""
        path = self.project / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]


@pytest.fixture(params=NAMES)
def hour(request, place):
    return FirstHour(request.param, request, place)


@pytest.fixture
def claude_hour(request, place):
    return FirstHour("claude-code", request, place)


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Install the built wheel without a source tree, and return its `rekindle`."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run(built, check=True, capture_output=True, text=True)
    python = environment.made(folder / "venv")
    [wheel] = folder.glob("*.whl")
    command = [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    origin = [str(python), "-c", "import rekindle; print(rekindle.__file__)"]
    found = subprocess.run(origin, check=True, capture_output=True, text=True).stdout
    assert found.startswith(str(folder)), found
    return folder / "venv/bin/rekindle"


def test_a_new_user_s_first_agent_works_and_is_verified(hour, installed):
    """The steps after the install are `init`, `doctor`, `run`, `status`; no file is edited."""
    hour.rekindle.program = [str(installed)]
    task = ("--task", "Write parser.py.", "--until", "test -s parser.py")
    out = hour.rekindle("init", "--yes", "--agent", "trades", "--harness", hour.name, *task)
    assert "it may edit and run commands" in out
    hour.rekindle("doctor")

    relay = "## Current Phase\nFinished\n\n## Next Action\nDONE\n"
    draft = ".rekindle/drafts/trades/relay.md"
    hour.model.play(
        hour.write_call("parser.py", "parse = str.split\n"),
        hour.write_call(draft, relay),
        Text("It is written."),
    )
    running = hour.rekindle.start("run", "trades")
    assert running.wait() == 0, running.out + running.err
    assert draft in hour.model.log.main[0].text
    assert (hour.project / "parser.py").read_text() == "parse = str.split\n"
    assert "refused" not in running.out + running.err
    assert hour.log("call.refused") == []
    assert len(hour.log("cycle.ended")) == 1, running.out
    assert "done and verified: the `until:` command passes" in hour.rekindle("status")
    [row] = json.loads(hour.rekindle("status", "--json"))["agents"]
    assert (row["state"], row["outcome"]) == ("done", "done"), row


def test_a_refused_call_is_shown_everywhere_and_the_hint_permits_it(hour, place):
    """Run, status, events, logs, brief and page show it; the YAML of the hint permits it."""
    manifest, rekindle = hour.project / "rekindle.yaml", hour.rekindle
    manifest.write_text(UNPERMITTED.format(harness=hour.name) + SUMMARIZER)
    (hour.project / "PROMPT.md").write_text(TASK)
    call = hour.write_call("parser.py")
    hour.model.play(call, Text("could not"), call, Text("done"))
    running = rekindle.start("run", "trades")
    place.wait_for(lambda: hour.log("safe_mode.entered") or None)
    [entered] = hour.log("safe_mode.entered")
    assert entered["why"] == "no-permission", (entered, hour.log("launch.ended"), running.out)
    assert not (hour.project / "parser.py").exists()
    assert hour.log("cycle.ended") == []
    [refused] = hour.log("call.refused")
    shown = f"{refused['tool']} "
    assert refused["of_run"] == 1
    assert "parser.py" in refused["about"]

    [row] = json.loads(rekindle("status", "--json"))["agents"]
    assert (row["state"], row["refused"]) == ("needs you", 1)
    setting = re.search(r"set in rekindle.yaml: (personas: .*)", row["reason"])[1]
    text = rekindle("status")
    assert "refused: 1 tool call in this run" in text
    assert setting in text
    assert re.search(r"call\.refused .*parser\.py", rekindle("events"))
    assert "1 tool call in this run: refused, no permission" in rekindle("brief", "trades")
    page = rekindle("brief", "--all")
    assert re.search(r"refused: +1 tool call in this run", page)
    assert re.search(r"a tool call was refused, no permission: .*parser\.py", page)
    assert re.search(rf"✗ {shown}.*parser\.py: refused, no permission", rekindle("logs"))
    [asked] = hour.log("question.asked")
    assert asked["choices"] == ["accept", "stop"]

    persona = setting.removeprefix("personas: {").removesuffix("}")
    manifest.write_text(f"{manifest.read_text()}  {persona}\n")
    rekindle("answer", asked["question"], "accept")
    assert running.wait() == 0, running.out + running.err
    assert (hour.project / "parser.py").exists()
    assert re.search(rf"✗ {shown}.*parser\.py: refused, no permission", running.out), running.out
    assert "· " not in running.out.partition("✗")[0], running.out
    assert "set in rekindle.yaml" in running.out


def test_a_call_that_the_persona_itself_denies_is_counted_and_the_run_continues(claude_hour):
    """This refusal is wanted: there is no safe mode and no question, although nothing was done."""
    hour, rekindle = claude_hour, claude_hour.rekindle
    rules = '{permissions: {allowed_tools: [Bash], deny: ["Bash(rm:*)"]}}'
    text = UNPERMITTED.format(harness=hour.name).replace('["test", "-e", "parser.py"]', '["true"]')
    (hour.project / "rekindle.yaml").write_text(f"{text}{SUMMARIZER}  default: {rules}\n")
    (hour.project / "PROMPT.md").write_text(TASK)
    (hour.project / "kept").touch()
    hour.model.play(hour.cli.kind.shell("rm kept"), Text("I may not."))
    running = rekindle.start("run", "trades")
    assert running.wait() == 0, running.out + running.err
    assert (hour.project / "kept").exists()
    assert "✗ Bash rm kept: refused, no permission" in running.out, running.out
    [refused] = hour.log("call.refused")
    assert (refused["denied"], refused["of_run"]) == (True, 1)
    assert hour.log("safe_mode.entered") == hour.log("question.asked") == []
    [row] = json.loads(rekindle("status", "--json"))["agents"]
    assert (row["state"], row["refused"]) == ("done", 1)


def test_a_tool_that_the_level_leaves_out_is_reported_as_refused(claude_hour, place):
    """The CLI has no such tool at the level `edit`; its answer is not a result of the call."""
    hour, rekindle = claude_hour, claude_hour.rekindle
    words = ("--harness", hour.name, "--tools", "edit", "--task", "Run the tests.")
    rekindle("init", "trades", "--yes", *words, "--until", "false")
    hour.model.play(hour.cli.kind.shell("npm test"), Text("I may not."))
    running = rekindle.start("run", "trades")
    place.wait_for(lambda: hour.log("safe_mode.entered") or hour.log("cycle.ended") or None)
    [entered] = hour.log("safe_mode.entered")
    assert entered["why"] == "no-permission"
    assert "Bash]}}}" in entered["words"], entered
    [refused] = hour.log("call.refused")
    assert (refused["tool"], refused["about"]) == ("Bash", "npm test")
    rekindle("stop", "trades")
    running.wait()
    assert "✗ Bash npm test: refused, no permission" in running.out, running.out
    assert "· Bash" not in running.out
