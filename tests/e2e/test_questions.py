"""The real CLIs ask a person: a login that is missing, and a call that nothing permits."""

import hashlib
import json
import signal

import pytest

from loopback import anthropic, codex_cli, gemini, openai
from loopback.script import Forever, Text
from torture.clis import _CODEX, NAMES, Cli

pytestmark = pytest.mark.timeout(180)

CLIS = {
    "claude-code": ("claude", "model", anthropic.UNAUTHORIZED),
    "codex": ("codex", "openai_model", openai.UNAUTHORIZED),
    "gemini": ("gemini", "gemini_model", gemini.UNAUTHORIZED),
}
TOOLS = {"claude-code": "Bash", "codex": "exec_command", "gemini": "run_shell_command"}
SECRET = "ghp_" + hashlib.sha256(b"a token").hexdigest()[:36]
MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1}}
personas:
  summarizer: {{adapter: command, command: ["false"]}}
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_login_and_a_refused_call_are_asked_about_and_answered_once(name, request, place):
    """The supervisor is killed between the question and the answer; no answer counts twice."""
    sandbox, model, unauthorized = CLIS[name]
    sandbox, model = request.getfixturevalue(sandbox), request.getfixturevalue(model)
    cli = Cli(name, sandbox, model, place)
    rekindle = cli.supervised()
    (rekindle.project / "rekindle.yaml").write_text(MANIFEST.format(harness=name))
    if name == "codex":
        config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=model.url)
        text = _CODEX.format(config=config).replace("danger-full-access", "read-only")
        sandbox.configure(text)

    def asked():
        path = rekindle.project / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == "question.asked"]

    model.play(Forever(unauthorized))
    running = rekindle.start("run", "trades")
    place.wait_for(lambda: len(asked()) == 1)
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert (asked()[0]["about"], asked()[0]["choices"]) == ("auth", ["retry", "stop"])
    assert "rekindle answer trades-1 retry|stop" in rekindle("status")
    rekindle("answer", "trades-1", "retry")
    rekindle("answer", "trades-1", "stop", code=7)

    line = f"touch made # {SECRET}"
    model.play(cli.kind.shell(line), Text("done"))
    running = rekindle.start("run", "trades")
    running.wait()
    assert not (rekindle.project / "made").exists()
    assert "refused, no permission" in running.out, running.out + running.err
    [row] = json.loads(rekindle("questions", "--json"))["questions"]
    assert (row["id"], row["about"], row["default"]) == ("trades-2", "permission", "deny")
    shown = json.dumps(row["request"])
    assert row["request"]["tool"] == TOOLS[name]
    assert "touch made" in shown
    assert SECRET not in shown
    permission = "Bash" if name == "codex" else TOOLS[name]
    assert f"allowed_tools: [{permission}]" in rekindle("approve")
    assert rekindle.events("launch.ended")[-1]["refused"] == 1
    assert [one["choice"] for one in rekindle.events("question.answered")] == ["retry", "allow"]
    model.play(Text("done"))
    rekindle.start("run", "trades").wait()
    assert "A person has answered: It is allowed." in model.log.main[-1].text
    assert len(asked()) == 2
