"""The first hour of a new user, with the real CLIs: what `init` writes, and refused calls."""

import json
import re

import pytest

from e2e.sandbox import TASK, Rekindle
from loopback import codex_cli
from loopback.script import Text, ToolCall
from torture.clis import _CODEX, NAMES, Cli

pytestmark = pytest.mark.timeout(180)

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
        if name == "codex":  # as a new user has it: nothing in its settings permits to write
            config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=model.url)
            text = _CODEX.format(config=config).replace("danger-full-access", "read-only")
            sandbox.configure(text)

    def write_call(self, name):
        """Return the call by which this CLI writes a file."""
        path = str(self.project / name)
        match self.name:
            case "claude-code":
                return ToolCall("Write", {"file_path": path, "content": "parse = str.split\n"})
            case "gemini":
                return ToolCall("write_file", {"file_path": path, "content": "parse = str.split\n"})
            case _:
                return self.cli.kind.shell(f"touch {name}")

    def log(self, kind):
        """Return the events of a kind in the log; our own commands would fold it first."""
        path = self.project / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]


@pytest.fixture(params=NAMES)
def hour(request, place):
    return FirstHour(request.param, request, place)


def test_init_with_defaults_lets_the_agent_write(hour):
    """An empty folder, `init`, a task, `run`: the file is there."""
    out = hour.rekindle("init", "--yes", "--agent", "trades", "--harness", hour.name)
    assert "it may edit and run commands" in out
    manifest = hour.project / "rekindle.yaml"
    assert "# What the agent may do: edit and run commands" in manifest.read_text()
    manifest.write_text(manifest.read_text().replace("personas:\n", f"personas:\n{SUMMARIZER}"))
    (hour.project / "PROMPT.md").write_text(TASK)
    hour.model.play(hour.write_call("parser.py"), Text("done"))
    started = hour.rekindle.start("run", "trades", "--cycles", "1")
    started.wait()
    told = started.out + started.err
    assert (hour.project / "parser.py").exists(), told
    assert "refused" not in told
    assert hour.log("call.refused") == []


def test_a_refused_call_is_shown_everywhere_and_the_hint_permits_it(hour, place):
    """Run, status, events, brief and page have it; the YAML of the hint lets the cycle continue."""
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
    assert "refused: 1 tool call of this run" in text
    assert setting in text
    assert re.search(r"call\.refused .*parser\.py", rekindle("events"))
    assert "1 tool call of this run: refused, no permission" in rekindle("brief", "trades")
    page = rekindle("brief", "--all")
    assert re.search(r"refused: +1 tool call of this run", page)
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
