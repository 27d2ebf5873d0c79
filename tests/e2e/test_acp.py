"""An agent that speaks the Agent Client Protocol is kept alive: with its session, and questions."""

import json
import signal
import sys
from types import SimpleNamespace

import pytest

from acp_stage import AGENT, SESSION, ask, call, say
from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program
from e2e.test_spending import charge
from loopback.script import Usage
from rekindle.policy.exits.stop_reasons import OUTCOMES, STOP_REASONS
from sampling import WHOLE

pytestmark = pytest.mark.timeout(300)

LATER = pytest.mark.skipif(not WHOLE, reason="takes long: only in `just torture`")
CAN = {"agentCapabilities": {"loadSession": True}}
TOOL = {"tool": ["sleep", "1000"]}
NEEDS_PERSON = 22
LIMIT = {"code": -32603, "message": "Usage limit reached, try again in 3 hours"}


@pytest.fixture
def rekindle(place, tmp_path):
    """Create a project whose agent is a scripted one."""
    found = Rekindle(Program(tmp_path / "acp"), place)
    (found.project / "PROMPT.md").write_text(TASK)
    return found


def script(rekindle, *turns, more="", harness="acp", **answers):
    """Write the agent's turns and the manifest."""
    journal = rekindle.project / "journal"
    text = {"journal": str(journal), "initialize": CAN, "turns": turns, **answers}
    (rekindle.project / "script.json").write_text(json.dumps(text))
    command = f"[{sys.executable}, {AGENT}, script.json]"
    entry = f"    harness: {harness}\n    cycles: 1\n    until: ['true']\n    command: {command}\n"
    (rekindle.project / "rekindle.yaml").write_text(
        f"version: 1\nagents:\n  trades:\n{entry}{more}"
    )


def await_entry(rekindle, is_wanted):
    """Return the first entry of the agent's journal that fits, once there is one."""
    journal = rekindle.project / "journal"

    def find():
        lines = journal.read_text().splitlines() if journal.exists() else []
        return next((entry for entry in map(json.loads, lines) if is_wanted(entry)), None)

    return rekindle.place.wait_for(find)


def list_tools(rekindle):
    return [argv for argv in rekindle.place.processes() if argv == TOOL["tool"]]


@pytest.mark.parametrize(
    "killed", ["agent", pytest.param("bridge", marks=[pytest.mark.torture, LATER])]
)
def test_a_session_continues_after_kill_9_in_a_tool(rekindle, killed):
    """The tool that was left behind is ended, and the session is loaded again."""
    script(rekindle, [say("first"), TOOL], [say("second")])
    running = rekindle.start("run")
    pids = await_entry(rekindle, lambda entry: "tool" in entry)
    rekindle.place.signal(pids[killed], signal.SIGKILL)
    assert running.wait() == 0, running.out + running.err
    crashed, ended = rekindle.events("launch.ended")
    assert (crashed["exit"], crashed["words"]) == ("crash", "ended by SIGKILL")
    assert (ended["exit"], ended["resumes"], ended["session"]) == ("clean", True, SESSION)
    assert list_tools(rekindle) == []
    assert "session/load" in (rekindle.project / "journal").read_text()


@pytest.mark.torture
@LATER
def test_a_session_continues_after_its_supervisor_was_killed(rekindle):
    """Only the output names the session, so it is recorded as soon as it is known."""
    script(rekindle, [say("first"), TOOL], [say("second")])
    running = rekindle.start("run")
    await_entry(rekindle, lambda entry: "tool" in entry)
    rekindle.place.wait_for(lambda: rekindle.events("session.started") or None)
    running.signal(signal.SIGKILL)
    running.wait()
    rekindle("run")
    lost, ended = rekindle.events("launch.ended")
    assert (lost["exit"], lost["session"]) == ("lost", SESSION)
    assert (ended["exit"], ended["resumes"]) == ("clean", True)
    assert list_tools(rekindle) == []
    assert "second" in rekindle("transcript")


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [("approve", "yes-1"), pytest.param("deny", "no-1", marks=[pytest.mark.torture, LATER])],
)
def test_a_permission_request_becomes_a_question(rekindle, answer, chosen):
    """The agent waits for the answer, and gets permission for this call only."""
    start, end = call(rawInput={"command": "git push"})
    script(rekindle, [say("go"), start, ask(), end, say("done")])
    running = rekindle.start("run")

    def find_question():
        asked = json.loads(rekindle("questions", "--json"))["questions"]
        return next(iter(asked), None)

    question = rekindle.place.wait_for(find_question)
    assert question["request"]["arguments"] == {"command": "git push"}
    rekindle(answer, question["id"])
    assert running.wait() == 0, running.out + running.err
    answered = await_entry(rekindle, lambda entry: "answered" in entry)["answered"]
    assert answered["optionId"] == chosen


@pytest.mark.parametrize(
    "command",
    [
        "[cat]",
        pytest.param("[echo, hello]", marks=[pytest.mark.torture, LATER]),
        pytest.param("['false']", marks=[pytest.mark.torture, LATER]),
    ],
)
def test_a_program_that_is_not_an_agent_is_started_once(rekindle, command):
    """Another start would not help, so the operator is told what to correct."""
    script(rekindle, [])
    manifest = rekindle.project / "rekindle.yaml"
    lines = [line for line in manifest.read_text().splitlines() if "command:" not in line]
    manifest.write_text("\n".join([*lines, f"    command: {command}"]))
    running = rekindle.start("run", "--once")
    assert running.wait() == NEEDS_PERSON, running.out + running.err
    (ended,) = rekindle.events("launch.ended")
    assert (ended["exit"], "speak" in ended["words"]) == ("misconfigured", True)
    assert "correct `command:`" in running.out + running.err


@pytest.mark.torture
@LATER
def test_an_agent_that_retries_in_silence_is_found(rekindle):
    """Some agents retry a refused request without a word; the watch ends them."""
    watch = "runtime:\n  watch: {silence: 2s, every: 0.5s}\n  restart: {cooldown: 0s}\n"
    script(rekindle, [say("x"), {"silent": 1}], [say("second")], more=watch)
    rekindle("run")
    hung, ended = rekindle.events("launch.ended")
    assert (hung["exit"], ended["exit"], ended["resumes"]) == ("hang", "clean", True)
    assert '"SIGTERM"' not in (rekindle.project / "journal").read_text()


@pytest.mark.torture
@LATER
def test_a_limit_is_waited_for(rekindle):
    """`run` ends while the agent would wait for hours."""
    script(rekindle, [{"error": LIMIT}])
    running = rekindle.start("run")
    rekindle.place.wait_for(lambda: rekindle.events("wait.started") or None)
    running.signal(signal.SIGTERM)
    running.wait()
    (limited,) = rekindle.events("launch.ended")
    assert limited["exit"] == "limit"
    assert limited["resets_at"]


def use(usd):
    cost = {"amount": usd, "currency": "USD"}
    return {"update": {"sessionUpdate": "usage_update", "used": 900, "size": 1000, "cost": cost}}


def test_the_cost_of_a_resumed_session_counts_once(rekindle):
    """Agents report the cost of the whole session, also after a launch that was killed."""
    script(rekindle, [say("first"), use(2.0), TOOL], [say("second"), use(2.5)])
    running = rekindle.start("run")
    pids = await_entry(rekindle, lambda entry: "tool" in entry)
    rekindle.place.signal(pids["agent"], signal.SIGKILL)
    assert running.wait() == 0, running.out + running.err
    killed, ended = rekindle.events("launch.ended")
    assert (killed["usd"], killed["run_usd"]) == (2.0, 2.0)
    assert (ended["usd"], ended["run_usd"], ended["session_usd"]) == (0.5, 2.5, 2.5)
    assert ended["is_estimated"] is False


def test_a_budget_in_dollars_ends_a_running_launch(rekindle):
    """The agent works on after it has reported its cost, and would never end by itself."""
    budget = "    budget: {usd: 1}\nprices: {default: {input: 1, output: 1}}\n"
    script(rekindle, [say("first"), use(1.5), TOOL], [say("second")], more=budget)
    rekindle("run", code=OUTCOMES[STOP_REASONS["budget"].outcome].exit_code)
    (ended,) = rekindle.events("launch.ended")
    assert ended["run_usd"] == 1.5
    (over,) = rekindle.events("run.ended")
    assert over["why"] == "budget"
    assert list_tools(rekindle) == []


@pytest.mark.parametrize("is_separate", [True, False])
def test_the_cost_of_an_agent_without_a_price_is_within_five_percent(rekindle, is_separate):
    """Each request is charged as by the scripted model; the price of a long prompt does not apply.

    Some agents count cached tokens as input, too.
    """
    requests, read, written, cached, stored = 40, 3_000, 700, 90_000, 4_000
    inner = 0 if is_separate else cached + stored
    usage = {
        "inputTokens": requests * (read + inner),
        "outputTokens": requests * written,
        "cachedReadTokens": requests * cached,
        "cachedWriteTokens": requests * stored,
        "totalTokens": requests * (read + cached + stored + written),
    }
    context = {"sessionUpdate": "usage_update", "used": 98_000, "size": 400_000}
    end = {"answer": {"stopReason": "end_turn", "usage": usage}}
    model = {"category": "model", "currentValue": "openai/gpt-5.5[medium]"}
    script(
        rekindle,
        [say("done"), {"update": context}, end],
        harness="codex-acp",
        new={"configOptions": [model]},
    )
    rekindle("run")
    (ended,) = rekindle.events("launch.ended")
    turn = SimpleNamespace(
        usage=Usage(input=read, cache_read=cached, cache_write=stored, output=written)
    )
    true = requests * charge(SimpleNamespace(step=turn, body={"model": "gpt-5.5"}))
    assert ended["run_usd"] == pytest.approx(true, rel=0.05)
    assert ended["run_tokens"] == usage["totalTokens"]
    assert ended["is_estimated"] is True
    assert f"~${ended['run_usd']:.2f}" in rekindle("status", "trades")
