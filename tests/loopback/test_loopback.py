"""The real Claude Code against the scripted model."""

import json
import signal
import sys

import pytest

from loopback import install
from loopback.anthropic import (
    BROKEN,
    COMPACTION,
    HELPER,
    OVERLOADED,
    RATE_LIMITED,
    STRUCTURED,
    SUBAGENT,
    UNAUTHORIZED,
    too_long,
)
from loopback.script import Cut, Fail, Forever, Hang, Parallel, Slow, Text, ToolCall, Usage

pytestmark = pytest.mark.timeout(300)

BASH = ("--allowedTools", "Bash")


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "as the test says"})


def test_a_text_turn(claude, model):
    """One prompt, one request, one answer, by the pinned version."""
    model.play(Text("all done"))
    run = claude.run("hello there")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.result["result"] == "all done"
    (request,) = model.log
    assert request.prompts == ["hello there"]
    pinned = json.loads((install.PINNED / "package.json").read_text())["dependencies"]
    assert run.of("system", "init")[0]["claude_code_version"] in pinned.values()
    assert "all done" in claude.transcript(run.session).read_text()


def test_a_tool_call(claude, model):
    """The result of a tool comes back with the next request."""
    script = model.play(bash("echo from the tool"), Text("all done"))
    run = claude.run("hello", *BASH)
    assert run.result["num_turns"] == 2
    assert [part.text for part in model.log.main[1].results] == ["from the tool"]
    assert script.remaining == 0


def test_parallel_calls(claude, model):
    """Calls of one answer all run, and come back in one request, each to its own call."""
    model.play(Parallel((bash("echo one"), bash("echo two; exit 3"))))
    claude.run("hello", *BASH)
    _, second = model.log.main
    asked = [part.call for part in second.parts if part.form == "call"]
    assert [part.call for part in second.results] == asked
    assert [part.is_error for part in second.results] == [False, True]
    one, two = second.results
    assert (one.text, "two" in two.text) == ("one", True)


def test_usage(claude, model):
    """The tokens that the model says it took arrive in the stream, and add up in the result."""
    model.play(
        ToolCall(
            "Bash", {"command": "true"}, Usage(1000, cache_read=200, cache_write=30, output=4)
        ),
        Text("all done", Usage(2000, cache_read=1230, output=5)),
    )
    run = claude.run("hello", *BASH)
    seen = [event["message"]["usage"] for event in run.of("assistant")]
    assert [usage["input_tokens"] for usage in seen] == [1000, 2000]
    assert [usage["cache_read_input_tokens"] for usage in seen] == [200, 1230]
    assert [usage["cache_creation_input_tokens"] for usage in seen] == [30, 0]
    (total,) = run.result["modelUsage"].values()
    assert (total["inputTokens"], total["outputTokens"]) == (3000, 9)


@pytest.mark.parametrize(
    "fail", [UNAUTHORIZED, RATE_LIMITED, BROKEN, OVERLOADED], ids=lambda fail: str(fail.status)
)
def test_an_error_that_lasts(claude, model, fail: Fail):
    """An error of the API is tried again once, and then told in the fields of the result."""
    model.play(Forever(fail))
    run = claude.run("hello")
    assert (run.returncode, len(model.log)) == (1, 2)
    assert [event["error_status"] for event in run.of("system", "api_retry")] == [fail.status]
    told = ("is_error", "subtype", "api_error_status", "api_error_type", "terminal_reason")
    expected = [True, "success", fail.status, fail.type, "api_error"]
    assert [run.result[name] for name in told] == expected


def test_when_to_try_again(claude, model):
    """The header that says when to try again is obeyed, and the next step answers."""
    model.play(Fail(429, "rate_limit_error", "slow down", {"retry-after": "1"}), Text("all done"))
    run = claude.run("hello")
    assert (run.returncode, run.result["result"]) == (0, "all done")
    assert [event["retry_delay_ms"] for event in run.of("system", "api_retry")] == [1000]


def test_a_prompt_that_is_too_long(claude, model):
    """A first prompt that does not fit cannot be compacted, and ends the run."""
    model.play(Forever(too_long()))
    run = claude.run("hello")
    assert (run.returncode, len(model.log)) == (1, 1)
    assert run.result["is_error"]
    assert run.result["terminal_reason"] == "prompt_too_long"


def test_a_conversation_that_is_too_long(claude, model):
    """A longer conversation is summarised on the side, and the script continues where it was."""
    model.play(bash("true"), too_long(), Text("all done"))
    model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    run = claude.run("hello", *BASH)
    assert run.result["result"] == "all done"
    assert [request.kind for request in model.log.side] == [COMPACTION]
    assert len(run.of("system", "compact_boundary")) == 1
    assert "the gist" in model.log.main[-1].text


def test_a_subagent(claude, model):
    """A sub-agent's turns are not the main conversation's, and its report reaches that."""
    asked = {"description": "d", "prompt": "look closely", "subagent_type": "general-purpose"}
    model.play(ToolCall("Agent", {**asked, "run_in_background": False}), Text("all done"))
    model.play(Text("nothing to see"), to=SUBAGENT)
    claude.run("hello", "--allowedTools", "Agent")
    assert ["look closely"] in [request.prompts for request in model.log.side]
    assert "nothing to see" in model.log.main[-1].text


def test_hooks_that_ask_the_model(claude, model):
    """Hooks that ask a model for a verdict take no step of the main conversation."""
    script = model.play(Text("all done"), Text("not asked for"))
    hooks = [{"type": kind, "prompt": "Is it fine? $ARGUMENTS"} for kind in ("prompt", "agent")]
    run = claude.run("hello", "--settings", json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}))
    assert run.result["result"] == "all done"
    assert {request.kind for request in model.log.side} == {STRUCTURED, HELPER}
    assert script.remaining == 1


def test_a_cut_stream(claude, model):
    """An answer that breaks off is asked for again."""
    model.play(Cut(Text("never whole")), Text("all done"))
    run = claude.run("hello")
    assert (run.returncode, run.result["result"], len(model.log.main)) == (0, "all done", 2)
    assert len(run.of("system", "api_retry")) == 1


def test_a_hang(claude, model):
    """A model that does not answer is waited for until the test lets it."""
    hang = Hang(Text("at last"))
    model.play(hang)
    running = claude.start("hello")
    model.log.wait_for(lambda request: request.step is hang, timeout=120)
    assert running.process.poll() is None
    hang.release.set()
    assert running.wait(180).result["result"] == "at last"


def test_an_end_during_a_hang(claude, model):
    """Ended while it waits for the model, it is gone without a result."""
    model.play(Hang())
    running = claude.start("hello")
    model.log.wait_for(lambda request: isinstance(request.step, Hang), timeout=120)
    running.process.send_signal(signal.SIGTERM)
    run = running.wait(180)
    assert run.returncode == 128 + signal.SIGTERM
    assert not run.of("result")


def test_a_slow_answer(claude, model):
    """An answer in slow pieces arrives whole."""
    model.play(Slow(Text("all done"), seconds=0.1))
    run = claude.run("hello")
    assert run.result["result"] == "all done"
    assert run.result["duration_api_ms"] >= 800  # eight pieces


def test_a_long_prompt(claude, model):
    """A long prompt on standard input arrives whole, and once."""
    prompt = "".join(f"line {number:06} of the prompt\n" for number in range(1200))
    assert len(prompt) > 30_000
    claude.run(prompt)
    (request,) = model.log.main
    assert request.text.count(prompt.strip()) == 1
    assert request.text.count("line 000700 of the prompt") == 1


def test_a_hook_adds_context(claude, model):
    """The text of a SessionStart hook reaches the model as the system's words."""
    added = {"hookEventName": "SessionStart", "additionalContext": "The relay says: go on."}
    said = json.dumps({"hookSpecificOutput": added})
    settings = claude.settings({"SessionStart": [sys.executable, "-c", f"print({said!r})"]})
    claude.run("hello", "--settings", str(settings))
    (request,) = model.log.main
    assert any("The relay says: go on." in words for words in request.injected)
    assert request.prompts == ["hello"]


def test_nothing_of_this_environment(claude, model, monkeypatch):
    """The program has the environment that was made for it, and no variable of this process."""
    monkeypatch.setenv("REKINDLE_TEST_LEAK", "leaked")
    model.play(bash("cat /proc/$CLAUDE_PID/environ | tr '\\0' '\\n'"), bash("env; echo ~"))
    running = claude.start("hello", *BASH)
    assert running.wait(180).returncode == 0
    own, tools = (part.text for part in model.log.main[2].results)
    assert dict(line.split("=", 1) for line in own.splitlines()) == claude.environment()
    assert f"HOME={claude.home}" in tools.splitlines()
    assert tools.splitlines()[-1] == str(claude.home)
    assert "leaked" not in tools
    assert f"CLAUDE_PID={running.process.pid}" in tools.splitlines()
