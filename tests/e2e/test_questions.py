"""The real CLIs ask a person about a missing login and a call that nothing permits."""

import hashlib
import json
import os
import signal
import sys
import time

import pytest

from e2e.test_bounds import RECEIVER
from loopback import anthropic, codex_cli, gemini, openai
from loopback.script import Forever, Hang, Text
from rekindle import config
from rekindle.api.home import Home
from rekindle.policy.operator import answers
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.terminal_screen.screen_reading import ScreenReader
from rekindle.web import page_data
from rekindle.wiring.open_store import open_store
from torture.clis import _CODEX, NAMES, Cli

pytestmark = pytest.mark.timeout(300)

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


class Asking:
    """An agent of a real CLI without permission to write."""

    def __init__(self, name, request, place):
        sandbox, model, self.unauthorized = CLIS[name]
        sandbox, self.model = request.getfixturevalue(sandbox), request.getfixturevalue(model)
        self.name, self.cli = name, Cli(name, sandbox, self.model, place)
        self.rekindle = self.cli.supervised()
        self.manifest = sandbox.project / "rekindle.yaml"
        self.manifest.write_text(MANIFEST.format(harness=name))
        if name == "codex":
            config = codex_cli.CONFIG.format(model=codex_cli.MODEL, url=self.model.url)
            text = _CODEX.format(config=config).replace("danger-full-access", "read-only")
            sandbox.configure(text)

    def given(self, words):
        """Return an answer to the last question, as a command acknowledges it."""
        known = open_store(config.load_project(self.rekindle.project)).read("trades").projection
        *_, question = known.questions.values()
        return answers.make_answer(known, question, words, clock.read_clock())

    def log(self, kind):
        """Return the events of a kind in the log; our own commands would fold it first."""
        path = self.rekindle.project / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]


@pytest.fixture(params=NAMES)
def asking(request, place):
    return Asking(request.param, request, place)


def test_a_login_and_refused_calls_are_asked_about_and_each_answer_counts_once(asking, place):
    """The supervisor is killed between question and answer; the last questions expire."""
    rekindle, model, log = asking.rekindle, asking.model, asking.log
    name, unauthorized, shell = asking.name, asking.unauthorized, asking.cli.kind.shell
    model.play(Forever(unauthorized))
    running = rekindle.start("run", "trades")
    place.wait_for(lambda: len(log("question.asked")) == 1)
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    [asked] = log("question.asked")
    assert (asked["about"], asked["choices"]) == ("auth", ["retry", "stop"])
    assert "rekindle answer trades-1 retry  (or: stop)" in rekindle("status")
    late = asking.given("stop")
    rekindle("answer", "trades-1", "retry")
    rekindle("answer", "trades-1", "stop", code=7)
    # A command that saw the open question acknowledged it: the next supervisor judges it.
    inbox.append_records(
        find_private_project(rekindle.project).agent("trades").inbox, [late], durable=True
    )

    # Make progress in spite of the refusal: otherwise the agent would be in safe mode.
    report, later = rekindle.project / "report.md", time.time() + 3600
    report.touch()
    os.utime(report, (later, later))
    line = f"touch made # {SECRET}"
    model.play(shell(line), shell("touch other"), Text("done"))
    running = rekindle.start("run", "trades")
    running.wait()
    assert not (rekindle.project / "made").exists()
    assert "refused, no permission" in running.out, running.out + running.err
    row, _ = json.loads(rekindle("questions", "--json"))["questions"]
    assert (row["id"], row["about"], row["default"]) == ("trades-2", "permission", "deny")
    shown = json.dumps(row["request"])
    assert row["request"]["tool"] == TOOLS[name]
    assert "touch made" in shown
    assert SECRET not in shown
    permitted = "allowed_tools: [Read, Grep, Glob, Edit, Write, Bash]"
    assert permitted in rekindle("approve", "trades-2")
    rekindle("deny", "trades-2", code=7)
    rekindle("deny")
    assert log("launch.ended")[-1]["refused"] == 2
    answers = [(one["choice"], "refused" in one) for one in log("question.answered")]
    assert answers == [("retry", False), ("stop", True), ("allow", False), ("deny", False)]

    short = "runtime: {questions: {deadline: 2s}}\n"
    asking.manifest.write_text(asking.manifest.read_text() + short)
    model.play(Forever(unauthorized))
    before = len(model.log.main)
    running = rekindle.start("run", "trades")
    # A login is tried again by itself, and each failure is another question.
    place.wait_for(lambda: len(log("question.asked")) == 5)
    for words in ("It is allowed.", "It is denied."):
        assert f"A person has answered: {words}" in model.log.main[before].text
    expired = (one for one in log("question.answered") if one["question"] == "trades-4")
    assert [(one["choice"], one["origin"]) for one in expired] == [("retry", "deadline")]
    rekindle("answer", "trades-4", "stop", code=7)
    rekindle("stop", "trades")
    running.wait()


def test_a_permission_is_asked_on_every_screen(request, place, tmp_path):
    """A notification has the command; `top`, `ui` and the API show the call and take an answer."""
    env = {"PATH": "/usr/bin:/bin"}
    listening = place.start([sys.executable, "-c", RECEIVER], env=env, cwd=tmp_path)
    place.wait_for((tmp_path / "port").exists)
    asking = Asking("claude-code", request, place)
    with asking.manifest.open("a") as manifest:
        manifest.write(f"notify: ['json://127.0.0.1:{(tmp_path / 'port').read_text()}/']\n")
    report, later = asking.rekindle.project / "report.md", time.time() + 3600
    report.touch()
    os.utime(report, (later, later))
    asking.model.play(asking.cli.kind.shell("touch made"), Text("done"))
    asking.rekindle.start("run", "trades").wait()
    place.wait_for((tmp_path / "notified").exists)
    assert "rekindle approve trades-1" in (tmp_path / "notified").read_text()
    with Home(asking.rekindle.project) as home:
        [asked], agent = home.questions(), home.agent("trades")
        [shown] = page_data.read_agent(agent)["questions"]
        assert (shown["id"], shown["choices"]) == ("trades-1", ("allow", "deny"))
        assert '"command":"touch made"' in shown["request"]
        assert ScreenReader(home).read().questions == {"trades": asked}
        answer = agent.answer("allow", question=asked.question)
        assert (answer.choice, answer.effect, bool(answer.seq)) == ("allow", "note", True)
        assert home.questions() == []
        assert ScreenReader(home).read().questions == {}
    place.signal(listening.pid, signal.SIGTERM)
    listening.wait()


def test_a_cli_that_is_killed_after_a_refused_call_is_asked_about_once(asking, place):
    """The CLI dies, comes back and is refused again; the first question stays open."""
    rekindle, log, shell = asking.rekindle, asking.log, asking.cli.kind.shell
    waiting, again = Hang(), Hang(Text("done"))
    asking.model.play(shell("touch made"), waiting, shell("touch made"), again)
    running = rekindle.start("run", "trades")
    asking.cli.asked(waiting)
    [cli] = [pid for pid, argv in place.living().items() if argv in rekindle.agents()]
    place.signal(cli, signal.SIGKILL)
    asking.cli.asked(again)
    [asked] = log("question.asked")
    [row] = json.loads(rekindle("questions", "--json"))["questions"]
    assert (row["id"], row["about"], row["state"]) == ("trades-1", "permission", "open")
    (rekindle.project / "report.md").touch()  # progress: otherwise it would enter safe mode
    again.release.set()
    assert running.wait() == 24, running.out + running.err
    ended = log("launch.ended")
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert asked["launch"] == ended[0]["launch"]
    assert [one.get("refused") for one in ended] == [1, 1]
    assert len(log("question.asked")) == 1
    rekindle("deny", "trades-1")
    rekindle("approve", "trades-1", code=7)
    [answer] = log("question.answered")
    assert answer["choice"] == "deny"
    assert not (rekindle.project / "made").exists()
