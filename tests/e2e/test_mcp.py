"""The three real CLIs list and use the tools of `rekindle mcp` in their first turn."""

import json
import sys
from urllib.parse import urlsplit

import pytest

import prerequisites
from loopback import codex_cli, gemini_cli
from loopback.script import Text, ToolCall
from rekindle.system.sandbox import probe
from torture.clis import _CODEX, NAMES, Cli

pytestmark = pytest.mark.timeout(300)

CLIS = {
    "claude-code": ("claude", "model", "mcp__rekindle__{}"),
    "codex": ("codex", "openai_model", "mcp__rekindle__{}"),
    "gemini": ("gemini", "gemini_model", "mcp_rekindle_{}"),
}
ARGUMENTS = ["-I", "-m", "rekindle", "mcp"]
MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1}}
personas:
  summarizer: {{adapter: command, command: ["false"]}}
{persona}"""
PERSONA = "  default: {{permissions: {{allowed_tools: [Read, {}]}}}}\n"


class Served:
    """An agent of a real CLI whose user has added our server."""

    def __init__(self, name, request, place):
        sandbox, model, self.pattern = CLIS[name]
        sandbox, self.model = request.getfixturevalue(sandbox), request.getfixturevalue(model)
        self.name, self.place = name, place
        self.rekindle = Cli(name, sandbox, self.model, place).supervised()
        server = {"command": sys.executable, "args": ARGUMENTS}
        if name == "codex":
            text = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=self.model.url)
            table = f"[mcp_servers.rekindle]\ncommand = {json.dumps(sys.executable)}\n"
            table += f'args = {json.dumps(ARGUMENTS)}\ndefault_tools_approval_mode = "approve"\n'
            sandbox.configure(f"{_CODEX.format(config=text)}\n{table}")
            persona = ""
        elif name == "gemini":
            sandbox.configure(model={"name": gemini_cli.MODEL}, mcpServers={"rekindle": server})
            persona = PERSONA.format("mcp_rekindle_*")
        else:
            (sandbox.home / ".claude.json").write_text(
                json.dumps({"mcpServers": {"rekindle": {"type": "stdio", **server}}})
            )
            persona = PERSONA.format("mcp__rekindle")
        manifest = MANIFEST.format(harness=name, persona=persona)
        (sandbox.project / "rekindle.yaml").write_text(manifest)

    def call(self, tool, **arguments):
        return ToolCall(self.pattern.format(tool), arguments)

    def results(self):
        return [part.text for part in self.model.log.main[-1].results]

    def log(self, kind):
        """Return the events of a kind in the log; our own commands would fold it first."""
        path = self.rekindle.project / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]


@pytest.fixture(params=NAMES)
def served(request, place):
    return Served(request.param, request, place)


def test_an_agent_reads_proposes_and_is_answered_in_its_first_turn(served):
    """Without `required`, every tool is there; a person answers while the agent waits."""
    failed = {"approach": "regexes", "reason": "too slow"}
    served.model.play(
        served.call("status"),
        served.call("propose_failed_approach", **failed),
        served.call("propose_loop", id="flaky-test", text="Fix the flaky test"),
        served.call("ask_person", question="Which database?", options=["Postgres", "SQLite"]),
        Text("done"),
    )
    running = served.rekindle.start("run", "trades")
    served.place.wait_for(lambda: served.log("question.asked") or None)
    [asked] = served.log("question.asked")
    assert (asked["about"], asked["text"]) == ("asked", "Which database?")
    assert "Postgres" in asked["choices"]
    served.rekindle("answer", "trades-1", "Postgres")
    running.wait()
    status, noted, opened, answered = served.results()
    assert "agent: trades" in status, status
    assert "Noted." in noted
    assert "Loop flaky-test is open" in opened
    assert "A person answered trades-1: Postgres" in answered
    first = served.model.log.main[0].text
    assert "propose_failed_approach" in json.dumps(served.model.log.main[0].body), first
    [proposal] = [each for each in served.log("proposal.made") if each["about"] != "question"]
    assert (proposal["text"], proposal["by"]) == ("regexes: too slow", "trades")
    assert "## Failed Approaches\n- regexes: too slow (" in served.rekindle("relay", "show")
    assert '"by":"trades"' in served.rekindle("loops", "--json")


def test_an_agent_in_a_sandbox_reads_and_proposes(request, place):
    """The sandbox hides the log's seal, which must not make the log look damaged."""
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    served = Served("claude-code", request, place)
    manifest = served.rekindle.project / "rekindle.yaml"
    host = urlsplit(served.model.url).netloc
    sandboxed = f"cycles: 1, sandbox: {{network: ['{host}']}}}}"
    manifest.write_text(manifest.read_text().replace("cycles: 1}", sandboxed))
    served.model.play(
        served.call("status"),
        served.call("propose_failed_approach", approach="regexes", reason="too slow"),
        Text("done"),
    )
    served.rekindle.start("run", "trades").wait()
    status, noted = served.results()
    assert "state: running: cycle 1" in status, status
    assert "Noted." in noted
    [proposal] = served.log("proposal.made")
    assert (proposal["text"], proposal["by"]) == ("regexes: too slow", "trades")
