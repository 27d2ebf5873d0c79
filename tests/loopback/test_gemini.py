"""The real Gemini CLI against the scripted model; each of its runs takes seconds."""

import json
import signal
import sys
import uuid

import pytest

from loopback.gemini import COMPACTION, OVERLOADED, out_of_quota, too_long
from loopback.sandbox import hooked, keeping
from loopback.script import Cut, Forever, Hang, Parallel, Text, ToolCall, Usage

pytestmark = pytest.mark.timeout(300)

EVENTS = (
    *("SessionStart", "BeforeAgent", "PreCompress", "BeforeModel", "BeforeToolSelection"),
    *("AfterModel", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"),
)
WORK = "import time, pathlib; pathlib.Path('working').touch(); time.sleep(600)"
"""A tool call that would take ten minutes."""


def shell(command: str, usage: Usage = Usage()) -> ToolCall:  # noqa: B008 - it is frozen
    return ToolCall("run_shell_command", {"command": command}, usage)


def test_a_tool_call_and_a_text(gemini, gemini_model):
    """The result of a tool comes back with the next request, and what the model says adds up."""
    script = gemini_model.play(
        shell("echo from the tool", Usage(1000, cache_read=200, cache_write=30, output=4)),
        Text("all done", Usage(2000, cache_read=1230, output=5)),
    )
    run = gemini.run("hello there")
    assert (run.returncode, run.said) == (0, "all done")
    first, second = gemini_model.log
    assert first.prompts == ["hello there"]
    (result,) = second.results
    assert ("from the tool" in result.text, result.is_error) == (True, False)
    assert script.remaining == 0
    assert run.result["status"] == "success"
    counted = ("input_tokens", "cached", "output_tokens", "tool_calls")
    assert [run.result["stats"][name] for name in counted] == [4460, 1430, 9, 1]
    records = [json.loads(row) for row in gemini.transcript(run.session).read_text().splitlines()]
    told = [record["tokens"]["input"] for record in records if "tokens" in record]
    assert list(dict.fromkeys(told)) == [1230, 3230]


def test_parallel_calls(gemini, gemini_model):
    """Calls of one answer all run, and come back in one request; a failed one is a success."""
    gemini_model.play(Parallel((shell("echo one"), shell("echo two; exit 3"))))
    run = gemini.run("hello")
    _, second = gemini_model.log.main
    asked = [part.call for part in second.parts if part.form == "call"]
    assert [part.call for part in second.results] == asked
    assert [part.is_error for part in second.results] == [False, True]
    assert [event["status"] for event in run.of("tool_result")] == ["success", "success"]


@pytest.mark.parametrize(
    ("step", "code", "told"),
    [
        (out_of_quota(30), 429 % 256, "You have exhausted your daily quota on this model."),
        (OVERLOADED, 503 % 256, "The model is overloaded."),
        (too_long(), 400 % 256, "exceeds the maximum number of tokens allowed"),
        (Cut(Text("never whole")), 1, "terminated"),
    ],
    ids=["429", "503", "too-long", "cut"],
)
def test_an_error(gemini, gemini_model, step, code, told):
    """An error of the API ends the run, with the status of HTTP as far as a code can hold it."""
    gemini_model.play(Forever(step))
    run = gemini.run("hello")
    assert (run.returncode, len(gemini_model.log)) == (code, 1)
    assert told in run.result["error"]["message"]


def test_hooks(gemini, gemini_model):
    """Each event fires in this order, with these facts; what one adds reaches the model."""
    kept = keeping(gemini, EVENTS)
    said = {"hookEventName": "BeforeAgent", "additionalContext": "The relay says: go on."}
    printed = f"print({json.dumps({'hookSpecificOutput': said})!r})"
    gemini.hooks({"BeforeAgent": [sys.executable, "-c", printed]})
    gemini_model.play(shell("echo from the tool"), Text("d"))
    run = gemini.run("hello")
    asked, after = ["PreCompress", "BeforeModel", "BeforeToolSelection"], "AfterModel"
    fired = hooked(kept)
    assert [event for event, _ in fired] == [
        *("SessionStart", "BeforeAgent"),
        *(*asked, after, "BeforeTool", "AfterTool"),
        *(*asked, after, after, "AfterAgent"),  # once for every piece of an answer
        "SessionEnd",
    ]
    told = dict(fired)
    for payload in told.values():
        assert payload["session_id"] == run.session
        assert payload["transcript_path"] == str(gemini.transcript(run.session))
    assert told["SessionStart"]["source"] == "startup"
    assert told["BeforeAgent"]["prompt"] == "hello"
    assert told["BeforeTool"]["tool_input"] == {"command": "echo from the tool"}
    assert "from the tool" in json.dumps(told["AfterTool"]["tool_response"])
    assert "d" in told["AfterAgent"]["prompt_response"]  # its pieces are not put together well
    assert told["SessionEnd"]["reason"] == "exit"
    request = gemini_model.log.main[0]
    assert request.prompts == ["hello"]
    assert any("The relay says: go on." in words for words in request.injected)


def test_a_conversation_that_is_long(gemini, gemini_model):
    """Over the threshold a session that is resumed is summarised on the side, and then checked."""
    gemini_model.play(Forever(Text("all done")))
    session = gemini.run("word " * 3000).session
    gemini.configure(model={"compressionThreshold": 0.0001})
    run = gemini.resume(session, "go on")
    assert (run.session, run.said) == (session, "all done")
    assert [request.kind for request in gemini_model.log.side] == [COMPACTION, COMPACTION]
    last = gemini_model.log.main[-1]
    assert "word word" not in last.text
    assert "the work so far" in last.text
    assert last.prompts == ["go on"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)], ids=["sigterm", "sigkill"]
)
def test_an_end_in_a_tool_call_and_then_a_resume(gemini, gemini_model, number, code):
    """However it ends, its tool keeps running; the same session resumes without that call."""
    kept = keeping(gemini, ("SessionStart", "BeforeTool", "AfterTool", "SessionEnd"))
    gemini_model.play(shell(f'{sys.executable} -c "{WORK}"'), Forever(Text("all done")))
    launched = gemini.start("hello")
    gemini.place.wait_for((gemini.project / "working").exists)
    launched.signal(number)
    run = launched.wait()
    assert (run.returncode, run.of("result")) == (code, [])
    assert [argv for argv in gemini.place.processes() if WORK in argv]
    last = [event for event, _ in hooked(kept)][2:]
    assert last == (["SessionEnd"] if number == signal.SIGTERM else [])
    again = gemini.resume(run.session, "go on")
    assert (again.returncode, again.session, again.said) == (0, run.session, "all done")
    request = gemini_model.log.main[-1]
    assert (request.prompts, request.results) == (["hello", "go on"], [])


def test_an_interrupt_while_the_model_is_silent(gemini, gemini_model):
    """Interrupted while it waits for the model, it ends as if all was well, without a result."""
    gemini_model.play(Hang())
    launched = gemini.start("hello")
    gemini_model.log.wait_for(lambda request: isinstance(request.step, Hang), timeout=120)
    launched.signal(signal.SIGINT)
    run = launched.wait()
    assert (run.returncode, run.of("result")) == (0, [])


def test_what_it_refuses_to_begin(gemini, gemini_model):
    """Without a key, or with a session that is not there, it asks nothing and says so."""
    run = gemini.run("hello", GEMINI_API_KEY="")
    assert (run.returncode, run.stdout) == (41, "")
    assert "GEMINI_API_KEY" in run.stderr
    run = gemini.resume(str(uuid.uuid4()), "go on")
    assert (run.returncode, run.stdout) == (42, "")
    assert "Invalid session identifier" in run.stderr or "No previous sessions" in run.stderr
    assert len(gemini_model.log) == 0
