"""The real Gemini CLI in the tests of Claude Code, as far as it supports them."""

import json
import shlex
import signal
import sys

import pytest

from e2e.sandbox import BANNER, RELAY, TASK, WORK, Rekindle, killed_in_a_tool_call
from loopback.gemini_cli import MODEL
from loopback.script import Forever, Hang, Parallel, Text, ToolCall
from rekindle.documents import primer
from rekindle.wiring.access.trust_checks import accept_folder

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades:
    harness: gemini
    prompt: PROMPT.md
    cycles: 1
    until: ["true"]
personas:
  summarizer: {adapter: command, command: ["false"]}
  default: {permissions: {allowed_tools: [Bash]}}
"""
CALLS = 12
TOLD = {"type": "command", "command": "echo $PPID >hooked.tmp; mv hooked.tmp hooked"}
"""The test's own hook reports the start of a tool call and the process of the CLI."""


def shell(command: str) -> ToolCall:
    return ToolCall("run_shell_command", {"command": command})


def long_call() -> ToolCall:
    return shell(shlex.join([sys.executable, "-c", WORK]))


@pytest.fixture
def rekindle(gemini, place):
    """Create a project with an agent, its task and its relay."""
    (gemini.project / "rekindle.yaml").write_text(MANIFEST)
    (gemini.project / "PROMPT.md").write_text(TASK)
    gemini.configure(
        model={"name": MODEL}, hooks={"BeforeTool": [{"hooks": [{**TOLD, "timeout": 5000}]}]}
    )
    found = Rekindle(gemini, place, gemini.headless)
    (found.project / "relay.md").write_text(RELAY)
    found("relay", "set", "relay.md")
    return found


@pytest.fixture
def hooked(rekindle):
    """Create the same project, with our hooks for the trusted project and for the user."""
    rekindle("hooks", "install", "--for", "project")
    rekindle("hooks", "install", "--for", "user")
    return trusting(rekindle)


def trusting(rekindle: Rekindle) -> Rekindle:
    """Have the person trust the project's folder."""
    said = {str(rekindle.project): "TRUST_FOLDER"}
    (rekindle.cli.settings / "trustedFolders.json").write_text(json.dumps(said))
    return rekindle


def test_a_supervised_session_resumes_after_kill_9(hooked, gemini_model):
    """The orphaned tool is stopped before anything else starts, and the same session resumes."""
    rekindle = hooked
    resumed = Hang(Text("all done"))
    gemini_model.play(long_call(), resumed)
    running = rekindle.start("run")
    killed_in_a_tool_call(rekindle)
    request = gemini_model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []  # it would have run for ten minutes
    assert len(rekindle.agents()) == 1
    resumed.release.set()
    assert running.wait() == 0, running.err
    first = gemini_model.log.main[0]
    assert request.prompts[0] == first.prompts[0]  # the same conversation
    assert "process was interrupted" in request.prompts[-1]
    assert BANNER not in request.text
    started = rekindle.events("launch.started")
    assert [one.get("resumes", False) for one in started] == [False, True]
    assert len({one["session"] for one in started}) == 1
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert ended[0]["swept"] >= 1
    assert ended[1]["window"] == 1_048_576
    # Our hooks came from settings of the launch.
    assert {one["session"] for one in rekindle.events("session.started")} == {started[0]["session"]}


def test_a_supervisor_that_is_killed_takes_its_agent_along(rekindle, gemini_model):
    """The next run stops what the CLI left behind, and resumes the same session."""
    resumed = Hang(Text("all done"))
    gemini_model.play(long_call(), resumed)
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    rekindle.place.wait_for(lambda: not rekindle.agents(), timeout=120)
    assert rekindle.tools()  # after SIGTERM it leaves its tools running
    again = rekindle.start("run")
    gemini_model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []
    resumed.release.set()
    assert again.wait() == 0, again.err
    assert len({one["session"] for one in rekindle.events("launch.started")}) == 1
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["lost", "clean"]


def test_a_session_without_its_transcript_is_replaced_by_a_fresh_one(rekindle, gemini_model):
    """Resuming fails, and a fresh session starts at once with the recovery notice."""
    gemini_model.play(long_call(), Text("all done"))
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
    (prompt,) = gemini_model.log.main[-1].prompts
    assert prompt.startswith(BANNER)
    assert RELAY.strip() in prompt
    assert TASK.strip() in prompt


def test_a_signal_from_the_operator_is_not_a_crash(rekindle, gemini_model):
    """It stops the agent, and the tool that the CLI leaves running."""
    gemini_model.play(long_call())
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(signal.SIGTERM)
    assert running.wait() == 130, running.err
    assert rekindle.agents() == rekindle.tools() == []
    (ended,) = rekindle.events("launch.ended")
    assert (ended["exit"], ended["swept"] >= 1) == ("interrupted", True)


def test_the_next_session_after_kill_9_is_told_once(hooked, gemini_model):
    """One of two installed hooks tells it, at its first prompt; a tool call counts once too."""
    gemini_model.play(
        long_call(), Parallel((shell("echo 1"), shell("echo 2"))), Text("a"), Text("b")
    )
    first = hooked.by_hand("count the stars")
    killed_in_a_tool_call(hooked)
    assert first.wait() == -9
    session = "6f1c2a34-0000-4000-8000-00000000abcd"
    second = hooked.by_hand("hello", "--session-id", session)
    assert second.wait() == 0, second.err
    (asked,) = [
        one for one in gemini_model.log.main if one.prompts == ["hello"] and not one.results
    ]
    assert asked.text.count(BANNER) == 1
    assert asked.text.count(RELAY.strip()) == 1
    hooked.fold()
    worked = [one["call"] for one in hooked.events("heartbeat")]
    assert len(worked) == len(set(worked)) == 2
    assert hooked.by_hand("go on", "--resume", session).wait() == 0
    request = gemini_model.log.main[-1]
    assert request.prompts == ["hello", "go on"]  # none was lost
    assert request.text.count(BANNER) == 1
    assert len(hooked.events("primer.given")) == 2  # one for each session


def test_a_long_primer_reaches_the_model_once_and_whole(hooked, gemini_model):
    """The prompt has thirty thousand characters, and no hook repeats them."""
    task = "# Task\n" + "".join(f"{number}. {'étape ' * 10}\n" for number in range(470))
    (hooked.project / "PROMPT.md").write_text(task)
    gemini_model.play(Text("all done"))
    hooked("run")
    (request,) = gemini_model.log.main
    (prompt,) = request.prompts
    assert len(prompt) > 30_000
    introduced = f"{primer.INTRODUCTION}{primer.TASK_OF_RELAY}\n\n{RELAY.strip()}"
    assert prompt.startswith(f"{introduced}\n\n{task.strip()}\n\nWhen the work of this cycle")
    assert request.text.count(RELAY.strip()) == 1
    assert request.text.count("469. étape") == 1


def test_hooks_at_two_levels_count_every_call_once(hooked, gemini_model):
    """Twelve tool calls, four of them parallel, make twelve heartbeats of one session."""
    calls = [shell(f"echo {number}") for number in range(CALLS)]
    gemini_model.play(Parallel(tuple(calls[:4])), *calls[4:], Text("all done"))
    hooked("run")
    hooked.fold()
    beats = hooked.events("heartbeat")
    assert len(beats) == len({one["call"] for one in beats}) == CALLS
    assert {one["session"] for one in beats} == {
        one["session"] for one in hooked.events("launch.started")
    }


def test_a_person_s_own_session_beside_a_supervised_one_is_left_alone(hooked, gemini_model):
    """It is logged as a visitor, not primed, not a sign of life, and never recovered."""
    waits = Hang(Text("all done"))
    gemini_model.play(waits, Text("hello person"))
    running = hooked.start("run")
    gemini_model.log.wait_for(lambda request: request.step is waits, timeout=120)
    hers = "6f1c2a34-0000-4000-8000-00000000abcd"
    visit = hooked.by_hand("what is this?", "--session-id", hers)
    assert visit.wait() == 0, visit.err
    (request,) = [one for one in gemini_model.log.main if one.prompts == ["what is this?"]]
    assert "Write the parser's tests" not in request.text
    waits.release.set()
    assert running.wait() == 0, running.err
    by_session = {one["session"]: one for one in hooked.events("session.started")}
    assert by_session[hers]["visitor"] is True
    (own,) = {one["session"] for one in hooked.events("launch.started")}
    assert "visitor" not in by_session[own]
    asked = {one["text"]: one.get("visitor", False) for one in hooked.events("prompt.submitted")}
    assert asked["what is this?"] is True
    assert hooked.events("session.lost") == []


def test_settings_with_comments_are_read_by_both(rekindle, gemini_model):
    """The CLI runs the hooks in the file, and every byte of the file is kept."""
    path = rekindle.cli.settings / "settings.json"
    text = path.read_text().replace("{", "{ // mine, all of it\n/* {} */", 1)
    path.write_text(text)
    accept_folder(rekindle.project)
    rekindle("hooks", "install", "--for", "user")
    assert "user: installed" in rekindle("hooks", "status")
    gemini_model.play(Text("all done"))
    run = rekindle.by_hand("hello")
    assert run.wait() == 0, run.err
    assert RELAY.strip() in gemini_model.log.main[0].text
    rekindle("hooks", "uninstall", "--for", "user")
    assert path.read_text() == text


def test_hooks_run_if_status_says_so(rekindle, gemini_model):
    """Those of a project run in a trusted folder, and not before."""
    gemini_model.play(Forever(Text("all done")))
    rekindle("hooks", "install", "--for", "project")
    for trusted in (False, True):
        if trusted:
            trusting(rekindle)
        assert ("disabled" in rekindle("hooks", "status", code=0 if trusted else 8)) != trusted
        assert rekindle.by_hand("hello").wait() == 0
        assert (RELAY.strip() in gemini_model.log.main[-1].text) == trusted


def test_a_read_only_persona_can_neither_write_nor_run(rekindle, gemini_model):
    """The tools are not offered, and calling them has no effect; reading works."""
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(MANIFEST.replace("[Bash]", "[Read, Grep, Glob]"))
    written = ToolCall("write_file", {"file_path": "made", "content": "x"})
    read = ToolCall("read_file", {"file_path": "PROMPT.md"})
    gemini_model.play(Parallel((shell("touch made"), written, read)), Text("all done"))
    rekindle("run")
    assert not (rekindle.project / "made").exists()
    first, second = gemini_model.log.main
    (tools,) = first.body["tools"]
    offered = {one["name"] for one in tools["functionDeclarations"]}
    assert {"read_file", "grep_search", "glob"} <= offered
    assert not {"write_file", "replace", "run_shell_command"} & offered
    assert any("Ship the parser" in result.text for result in second.results)


def test_an_agent_that_may_run_commands_may_redirect_their_output(rekindle, gemini_model):
    gemini_model.play(shell("echo one >made && cat <made >>made.twice 2>&1"), Text("all done"))
    rekindle("run")
    assert (rekindle.project / "made.twice").read_text() == "one\n"


def test_an_agent_that_goes_round_in_circles_is_not_done(rekindle, gemini_model):
    """The CLI stops itself and reports success: a fresh session continues the work."""
    gemini_model.play(*(shell("echo again") for _ in range(6)), Text("all done"))
    told = rekindle("run")
    assert "Loop detected" in told
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["handoff", "clean"]
    assert "it stopped because it repeated itself" in ended[0]["words"]
    assert len({one["session"] for one in ended}) == 2
    (repeated,) = rekindle.events("repetition.detected")
    assert (repeated["pattern"], repeated["action"]) == ("cli", "handoff")
    (triggered,) = rekindle.events("handoff.triggered")
    assert triggered["by"] == "repetition"
    assert "The session before this one was stopped" in gemini_model.log.main[-1].text


def test_a_command_cannot_be_denied_by_its_prefix(rekindle, gemini_model):
    """A command has other names, so the rule is refused by its name, and nothing starts."""
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(MANIFEST.replace("[Bash]", '[Bash], deny: ["Bash(touch:*)"]'))
    running = rekindle.start("run")
    assert running.wait() == 3
    assert "cannot enforce the permission 'Bash(touch:*)'" in running.err
    assert len(gemini_model.log) == 0


def test_an_extension_that_the_cli_loads_by_itself(rekindle, gemini_model):
    """No settings are touched; the session is primed at its first prompt."""
    folder = rekindle.cli.home / ".gemini/extensions/rekindle"
    accept_folder(rekindle.project)
    rekindle("hooks", "export", str(folder), "--harness", "gemini")
    gemini_model.play(Text("all done"))
    run = rekindle.by_hand("hello")
    assert run.wait() == 0, run.err
    assert RELAY.strip() in gemini_model.log.main[0].text
