"""The real Claude Code is killed in the middle of a tool call, and the work continues."""

import json
import signal

import pytest

from e2e.sandbox import BANNER, RELAY, TASK, killed_in_a_tool_call, long_call
from loopback.script import Hang, Text
from rekindle.documents import primer

pytestmark = pytest.mark.timeout(300)


def test_a_supervised_session_resumes_after_kill_9(rekindle, model):
    """The orphaned tool is stopped before anything else starts, and the same session resumes."""
    resumed = Hang(Text("all done"))
    model.play(long_call(), resumed)
    running = rekindle.start("run")
    killed_in_a_tool_call(rekindle)
    request = model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []  # it would have run for ten minutes
    assert len(rekindle.agents()) == 1
    resumed.release.set()
    assert running.wait() == 0, running.err
    first = model.log.main[0]
    assert first.prompts[0] in request.text  # the same conversation, with its earlier part
    assert "process was interrupted" in request.prompts[-1]
    assert BANNER not in request.text
    started = rekindle.events("launch.started")
    assert [one.get("resumes", False) for one in started] == [False, True]
    assert len({one["session"] for one in started}) == 1
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert ended[0]["swept"] >= 1
    assert "the same session continues" in running.out


def test_a_supervisor_that_is_killed_takes_its_agent_along(rekindle, model):
    """Nothing keeps running unsupervised; the next run resumes the same session."""
    resumed = Hang(Text("all done"))
    model.play(long_call(), resumed)
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    assert rekindle.agents()
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    rekindle.place.wait_for(lambda: not rekindle.agents() and not rekindle.tools(), timeout=120)
    again = rekindle.start("run")
    model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    resumed.release.set()
    assert again.wait() == 0, again.err
    started = rekindle.events("launch.started")
    assert len({one["session"] for one in started}) == 1
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["lost", "clean"]
    assert {one["cycle"] for one in started} == {1}


def test_a_session_without_its_transcript_is_replaced_by_a_fresh_one(rekindle, model):
    """Resuming fails, and a fresh session starts at once with the recovery notice."""
    rekindle("loops", "add", "rate-limit", "How many an hour?")
    model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    (session,) = {one["session"] for one in rekindle.events("launch.started")}
    rekindle.cli.transcript(session).unlink()
    killed_in_a_tool_call(rekindle)
    assert running.wait() == 0, running.err
    assert [one["exit"] for one in rekindle.events("launch.ended")] == [
        "crash",
        "resume-failed",
        "clean",
    ]
    (prompt,) = model.log.main[-1].prompts
    assert prompt.startswith(BANNER)
    assert "  Task: Write the parser's tests\n  Open loops: 1\n" in prompt
    assert "rate-limit: How many an hour?" in prompt
    assert RELAY.strip() in prompt
    assert TASK.strip() in prompt


def test_a_transcript_of_another_session_is_not_resumed(rekindle, model):
    """The CLI trusts the file's name alone, so a fresh session starts instead."""
    model.play(Text("a secret of another session"))
    other = rekindle.by_hand("remember this")
    assert other.wait() == 0
    theirs = rekindle.cli.transcript(json.loads(other.out.splitlines()[-1])["session_id"])
    model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    pid = rekindle.wait_until_hooked()
    (session,) = {one["session"] for one in rekindle.events("launch.started")}
    theirs.replace(rekindle.cli.transcript(session))
    rekindle.place.signal(pid, signal.SIGKILL)
    assert running.wait() == 0, running.err
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["crash", "clean"]
    last = model.log.main[-1]
    assert "a secret of another session" not in last.text
    assert last.prompts[0].startswith(BANNER)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_from_the_operator_is_not_a_crash(rekindle, model, number):
    """The signal stops the agent and its tool; the next run resumes the same session."""
    model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(number)
    assert running.wait() == 130, running.err
    assert rekindle.agents() == rekindle.tools() == []
    assert "`rekindle run trades` continues" in running.out
    rekindle("run")
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["interrupted", "clean"]
    assert len({one["session"] for one in rekindle.events("launch.started")}) == 1


def test_a_long_primer_reaches_the_model_once_and_whole(rekindle, model):
    """The CLI accepts thirty thousand characters of prompt unchanged."""
    task = "# Task\n" + "".join(f"{number}. {'étape ' * 10}\n" for number in range(470))
    rules = "Never touch main.\n"
    (rekindle.project / "PROMPT.md").write_text(task)
    (rekindle.project / "RULES.md").write_text(rules)
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace("    prompt:", "    rules: RULES.md\n    prompt:")
    )
    model.play(Text("all done"))
    rekindle("run")
    (request,) = model.log.main
    (prompt,) = request.prompts
    assert len(prompt) > 30_000
    introduced = f"{primer.INTRODUCTION}{primer.TASK_OF_RELAY}\n\n{RELAY.strip()}"
    assert prompt.startswith(f"{rules.strip()}\n\n{introduced}\n\n{task.strip()}\n\nWhen the")
    assert request.text.count(RELAY.strip()) == 1
