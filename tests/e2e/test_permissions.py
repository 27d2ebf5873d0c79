"""The real CLIs hold a call that matches `ask:` until a person has decided about it."""

import json
import signal
from urllib.parse import urlsplit

import pytest

from loopback.script import Text
from torture.clis import Cli

pytestmark = pytest.mark.timeout(300)

CLIS = {
    "claude-code": ("claude", "model"),
    "codex": ("codex", "openai_model"),
    "gemini": ("gemini", "gemini_model"),
}
MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1, sandbox: {sandbox}}}
personas:
  summarizer: {{adapter: command, command: ["false"]}}
  default: {{permissions: {{allowed_tools: [Bash], ask: ["Bash(git push*)"]}}}}
runtime: {{questions: {{wait: {wait}}}, relay: {{summarizer: mechanical}}}}
"""
PUSH = "mktemp pushed.XXXX; git push"
FREE = "mktemp free.XXXX"


class Gated:
    """An agent of a real CLI that may not push without approval."""

    def __init__(self, name, request, place):
        sandbox, model = (request.getfixturevalue(fixture) for fixture in CLIS[name])
        self.name, self.model, self.place = name, model, place
        self.cli = Cli(name, sandbox, model, place)
        self.rekindle = self.cli.supervised()
        self.project = sandbox.project
        self.shell = self.cli.kind.shell
        self.set_up()
        if name == "gemini":
            self.rekindle("hooks", "install", "--harness", "gemini", "--for", "user")

    def set_up(self, *, wait="2m"):
        network = f"{{network: ['{urlsplit(self.model.url).netloc}']}}"
        sandbox = "off" if self.name == "claude-code" else network
        text = MANIFEST.format(harness=self.name, wait=wait, sandbox=sandbox)
        (self.project / "rekindle.yaml").write_text(text)

    def start(self):
        self.running = self.rekindle.start("run", "trades")
        return self.running

    def log(self, kind):
        path = self.project / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]

    def wait_for_question(self, number=1):
        """Return the last of so many questions, once it was asked."""
        self.place.wait_for(
            lambda: (
                len(self.log("question.asked")) == number or self.running.pid in self.place.ended
            )
        )
        assert self.running.pid not in self.place.ended, self.running.out + self.running.err
        return self.log("question.asked")[-1]

    def runs(self, name="pushed"):
        """Return how often a call ran."""
        return len(list(self.project.glob(f"{name}.*")))

    def told(self):
        """Return the last request to the model, with all results."""
        return self.model.log.main[-1].text

    def gates(self):
        """Return the processes of the gate, without their shell."""
        living = self.place.living()
        return [
            pid
            for pid, argv in living.items()
            if len(argv) > 3 and argv[1:3] == ["-I", "-S"] and "/gate-" in argv[3]
        ]


@pytest.fixture(params=CLIS)
def gated(request, place):
    return Gated(request.param, request, place)


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.torture] if name != "claude-code" else [])
        for name in CLIS
    ]
)
def swept(request, place):
    """The same, but only `just torture` tries every CLI."""
    return Gated(request.param, request, place)


def test_an_approval_lets_exactly_that_call_run_once(gated):
    """The same call again, and another one, are new questions; other calls need none."""
    shell = gated.shell
    gated.model.play(shell(PUSH), shell(FREE), shell(PUSH), shell(f"{PUSH} --force"), Text("done"))
    running = gated.start()
    asked = gated.wait_for_question()
    assert (asked["about"], asked["default"], asked["choices"]) == (
        "permission",
        "deny",
        ["allow", "deny"],
    )
    assert PUSH in json.dumps(asked["request"])
    assert gated.runs() == 0
    gated.rekindle("approve", "trades-1")
    gated.rekindle("approve", "trades-1", code=7)
    gated.wait_for_question(2)
    assert (gated.runs(), gated.runs("free")) == (1, 1)
    gated.rekindle("deny", "trades-2")
    gated.wait_for_question(3)
    gated.rekindle("deny", "trades-3")
    running.wait()
    assert (gated.runs(), gated.runs("free")) == (1, 1), running.out + running.err
    assert [one["question"] for one in gated.log("call.permitted")] == ["trades-1"]
    assert len(gated.log("question.asked")) == 3
    assert "A person denied this call" in gated.told()


def test_claude_code_refuses_a_spelling_that_its_own_rules_miss(place, request):
    gated = Gated("claude-code", request, place)
    gated.model.play(gated.shell("mktemp pushed.XXXX; git -C . push"), Text("done"))
    gated.start().wait()
    assert gated.runs() == 0
    assert "starts with `git push`" in gated.told()


def test_no_answer_refuses_the_call_and_a_later_one_counts_once(swept):
    """The agent is told and continues; the next run uses the approval for the same call only."""
    shell = swept.shell
    swept.set_up(wait="5s")
    swept.model.play(shell(PUSH), shell(FREE), Text("done"))
    assert swept.start().wait() == 24
    assert (swept.runs(), swept.runs("free")) == (0, 1)
    assert "A person was asked for permission and has not answered yet" in swept.told()
    [asked] = swept.log("question.asked")
    [row] = json.loads(swept.rekindle("questions", "--json"))["questions"]
    assert (row["id"], row["state"]) == (asked["question"], "open")
    assert swept.log("launch.ended")[-1]["exit"] == "clean"

    swept.set_up()
    swept.rekindle("approve", "trades-1")
    swept.model.play(shell(f"{PUSH} --force"), shell(PUSH), shell(PUSH), Text("done"))
    running = swept.start()
    swept.wait_for_question(2)
    swept.rekindle("deny", "trades-2")
    swept.wait_for_question(3)
    assert swept.runs() == 1
    swept.rekindle("deny", "trades-3")
    running.wait()
    assert swept.runs() == 1
    assert [one["question"] for one in swept.log("call.permitted")] == ["trades-1"]


@pytest.mark.parametrize("broken", ["gate", "supervisor"])
def test_a_broken_gate_never_lets_a_call_run(swept, broken):
    """An approval that reaches no gate is used for the same call in the next run."""
    swept.model.play(swept.shell(PUSH), Text("done"))
    running = swept.start()
    swept.wait_for_question()
    if broken == "gate":
        [gate] = swept.gates()
        swept.place.signal(gate, signal.SIGKILL)
    else:
        running.signal(signal.SIGKILL)
    running.wait()
    swept.rekindle("approve", "trades-1")
    assert swept.runs() == 0
    swept.model.play(swept.shell(PUSH), swept.shell(PUSH), Text("done"))
    running = swept.start()
    swept.wait_for_question(2)
    assert swept.runs() == 1
    swept.rekindle("deny", "trades-2")
    running.wait()
    assert swept.runs() == 1
