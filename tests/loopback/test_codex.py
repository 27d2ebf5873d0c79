"""The real Codex against the scripted model."""

import json
import signal
import sys
import uuid
from pathlib import Path

import pytest

from loopback import install
from loopback.openai import (
    BROKEN,
    COMPACTION,
    OVERLOADED,
    RATE_LIMITED,
    UNAUTHORIZED,
    too_long,
    usage_limit,
)
from loopback.sandbox import hooked, keeping
from loopback.script import Cut, Forever, Hang, Parallel, Slow, Text, ToolCall, Usage

pytestmark = pytest.mark.timeout(300)

EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"),
    *("PreCompact", "PostCompact", "Interrupt"),
)
WORK = "import time, pathlib; pathlib.Path('working').touch(); time.sleep(600)"
"""A tool call that would take ten minutes."""


def shell(command: str, usage: Usage = Usage()) -> ToolCall:  # noqa: B008 - it is frozen
    return ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000}, usage)


def in_a_tool(codex, model):
    """A run whose tool has begun, and would go on for long."""
    model.play(shell(f'{sys.executable} -c "{WORK}"'), Forever(Text("all done")))
    launched = codex.start("hello")
    codex.place.wait_for((codex.project / "working").exists)
    return launched


def test_a_text_turn(codex, openai_model):
    """One prompt, one request, one answer, by the pinned version."""
    openai_model.play(Text("all done"))
    run = codex.run("hello there")
    assert (run.returncode, run.said) == (0, ["all done"])
    (request,) = openai_model.log
    assert request.prompts == ["hello there"]
    meta = json.loads(codex.transcript(run.session).read_text().splitlines()[0])["payload"]
    assert (meta["id"], meta["cli_version"]) == (run.session, install.CODEX.version)


def test_a_tool_call(codex, openai_model):
    """The result of a tool comes back with the next request."""
    script = openai_model.play(shell("echo from the tool"), Text("all done"))
    run = codex.run("hello")
    (result,) = openai_model.log.main[1].results
    assert (result.text.splitlines()[-1], result.is_error) == ("from the tool", False)
    (command,) = run.items("command_execution")
    assert (command["exit_code"], command["aggregated_output"]) == (0, "from the tool\n")
    assert script.remaining == 0


def test_parallel_calls(codex, openai_model):
    """Calls of one answer all run, and come back in one request, each to its own call."""
    openai_model.play(Parallel((shell("echo one"), shell("echo two; exit 3"))))
    run = codex.run("hello")
    _, second = openai_model.log.main
    asked = [part.call for part in second.parts if part.form == "call"]
    assert [part.call for part in second.results] == asked
    assert [part.is_error for part in second.results] == [False, True]
    assert sorted(item["status"] for item in run.items("command_execution")) == [
        "completed",
        "failed",
    ]


def test_usage(codex, openai_model):
    """The tokens that the model says it took add up at the end, and stand in the rollout before."""
    openai_model.play(
        shell("true", Usage(1000, cache_read=200, cache_write=30, output=4)),
        Text("all done", Usage(2000, cache_read=1230, output=5)),
    )
    run = codex.run("hello")
    (ended,) = run.of("turn.completed")
    assert ended["usage"] == {
        "input_tokens": 4460,
        "cached_input_tokens": 1430,
        "cache_write_input_tokens": 30,
        "output_tokens": 9,
        "reasoning_output_tokens": 0,
    }
    records = [json.loads(line) for line in codex.transcript(run.session).read_text().splitlines()]
    payloads = [each["payload"] for each in records]
    counted = [each["info"] for each in payloads if each.get("type") == "token_count"]
    seen = [each["last_token_usage"]["input_tokens"] for each in counted if each]
    assert list(dict.fromkeys(seen)) == [1230, 3230]
    assert counted[-1]["model_context_window"] > 100_000


@pytest.mark.parametrize(
    ("fail", "requests", "told"),
    [
        (UNAUTHORIZED, 2, "unexpected status 401 Unauthorized: Incorrect API key provided"),
        (RATE_LIMITED, 1, "exceeded retry limit, last status: 429 Too Many Requests"),
        (usage_limit(4_102_444_800, 3600), 1, "try again at Jan 1st, 2100 12:00 AM."),
        (BROKEN, 4, "experiencing high demand"),
        (OVERLOADED, 2, "Selected model is at capacity."),
        (too_long(), 1, "ran out of room in the model's context window"),
    ],
    ids=lambda fail: fail.type if hasattr(fail, "type") else "",
)
def test_an_error_that_lasts(codex, openai_model, fail, requests, told):
    """An error of the API fails the turn, with a message and without its own exit code."""
    openai_model.play(Forever(fail))
    run = codex.run("hello")
    assert (run.returncode, len(openai_model.log)) == (1, requests)
    assert told in run.failure


def test_a_conversation_that_is_long(codex, openai_model):
    """Over its own limit the conversation is summarised on the side; hooks tell of it."""
    kept = keeping(codex, EVENTS)
    openai_model.play(shell("true", Usage(90_000)), Text("all done"))
    openai_model.play(Text("the gist"), to=COMPACTION)
    run = codex.run("hello", "-c", "model_auto_compact_token_limit=50000")
    assert run.said == ["all done"]
    assert [request.kind for request in openai_model.log.side] == [COMPACTION]
    last = openai_model.log.main[-1]
    assert "the gist" in last.text
    assert last.prompts == ["hello"]
    fired = [(event, payload.get("source")) for event, payload in hooked(kept)]
    assert fired[4:7] == [("PreCompact", None), ("PostCompact", None), ("SessionStart", "compact")]


def test_a_cut_stream(codex, openai_model):
    """An answer that breaks off is asked for again."""
    openai_model.play(Cut(Text("never whole")), Text("all done"))
    run = codex.run("hello")
    assert (run.returncode, run.said, len(openai_model.log.main)) == (0, ["all done"], 2)
    assert "stream disconnected" in run.of("error")[0]["message"]


def test_a_hang_and_a_slow_answer(codex, openai_model):
    """A model that does not answer is waited for; slow pieces arrive whole."""
    hang = Hang(shell("true"))
    openai_model.play(hang, Slow(Text("at last"), seconds=0.05))
    launched = codex.start("hello")
    openai_model.log.wait_for(lambda request: request.step is hang, timeout=120)
    hang.release.set()
    assert launched.wait().said == ["at last"]


def test_no_key(codex, openai_model):
    """Without a key nothing is asked, and the turn fails."""
    run = codex.run("hello", OPENAI_API_KEY="")
    assert (run.returncode, len(openai_model.log)) == (1, 0)
    assert run.failure == "Missing environment variable: `OPENAI_API_KEY`."


def test_hooks(codex, openai_model):
    """Each event fires once, in this order, with these facts; what one adds reaches the model."""
    kept = keeping(codex, EVENTS)
    said = {"hookEventName": "SessionStart", "additionalContext": "The relay says: go on."}
    printed = f"print({json.dumps({'hookSpecificOutput': said})!r})"
    codex.hooks({"SessionStart": [sys.executable, "-c", printed]})
    openai_model.play(shell("echo from the tool"), Text("all done"))
    run = codex.run("hello")
    fired = hooked(kept)
    assert [event for event, _ in fired] == list(EVENTS[:6])
    told = dict(fired)
    for payload in told.values():
        assert payload["session_id"] == run.session
        assert payload["transcript_path"] == str(codex.transcript(run.session))
    assert told["SessionStart"]["source"] == "startup"
    assert told["UserPromptSubmit"]["prompt"] == "hello"
    assert told["PreToolUse"]["tool_input"] == {"command": "echo from the tool"}
    assert told["PostToolUse"]["tool_response"] == "from the tool\n"
    assert told["Stop"]["last_assistant_message"] == "all done"
    assert told["SessionEnd"]["reason"] == "other"
    assert "The relay says: go on." in openai_model.log.main[0].injected


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, -15), (signal.SIGKILL, -9)]
)
def test_an_end_in_a_tool_call_and_then_a_resume(codex, openai_model, number, code):
    """However it ends, its tool ends too; the same session resumes and knows of the abort."""
    kept = keeping(codex, EVENTS)
    launched = in_a_tool(codex, openai_model)
    launched.signal(number)
    run = launched.wait()
    assert (run.returncode, run.of("turn.completed")) == (code, [])
    codex.place.wait_for(lambda: not codex.place.processes())
    last = [event for event, _ in hooked(kept)][3:]
    assert last == (["Interrupt", "SessionEnd"] if number == signal.SIGINT else [])
    again = codex.resume(run.session, "go on")
    assert (again.returncode, again.session, again.said) == (0, run.session, ["all done"])
    request = openai_model.log.main[-1]
    assert request.prompts == ["hello", "go on"]
    assert "aborted" in request.results[0].text


def test_a_session_that_is_not_there(codex, openai_model):
    """An id that is not there is refused; a name that is not there opens a session, silently."""
    run = codex.resume(str(uuid.uuid4()), "go on")
    assert (run.returncode, run.stdout, len(openai_model.log)) == (1, "", 0)
    assert "no rollout found for thread id" in run.stderr
    run = codex.resume("no-such-name", "go on")
    assert (run.returncode, run.said) == (0, ["done."])


def test_nothing_of_this_environment(codex, openai_model, monkeypatch):
    """The program has the environment that was made for it, and no variable of this process."""
    monkeypatch.setenv("REKINDLE_TEST_LEAK", "leaked")
    openai_model.play(shell("tr '\\0' '\\n' < /proc/$PPID/environ; echo; echo ~"))
    codex.run("hello")
    (result,) = openai_model.log.main[1].results
    *own, home = result.text.partition("Output:\n")[2].split()
    # Every program in a place is told that the folder is trusted.
    whole = {"REKINDLE_TRUST": "1", **codex.environment()}
    assert dict(line.split("=", 1) for line in own) == whole
    assert Path(home) == codex.home
