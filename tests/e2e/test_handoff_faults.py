"""A handoff fails: the summarizer breaks, or a fresh session has no room.

In every case no finished work is lost: the agent continues, or waits for a person.
"""

import itertools
import json
import shlex
import signal
import sys
from pathlib import Path

import pytest

from e2e.handing import MARK, HandingClaude
from loopback.script import Text, ToolCall
from rekindle.documents import checkpoint
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.summaries import summary
from sampling import in_ci

pytestmark = pytest.mark.timeout(300)

SCRIBE = [sys.executable, "-I", str(Path(__file__).with_name("scribe.py"))]
ANSWER = {
    name: [{"text": f"all there is of {name.lower()}", "turns": [1]}]
    for name in summary.list_asked_sections("checkpoint")
}
IMPATIENT = """
import runpy, sys
from rekindle.policy.settings import runtime_settings
runtime_settings.SUMMARY_SECONDS = 1.5
sys.argv[0] = "rekindle"
runpy.run_module("rekindle", run_name="__main__", alter_sys=True)
"""
"""Our own program, with a timeout of one second for a summarizer instead of five minutes."""


@pytest.fixture
def found(claude, place, model):
    return HandingClaude(claude, place, model)


@pytest.fixture
def asked(tmp_path):
    """Return the file in which a summarizer counts its calls."""
    return tmp_path / "asked"


def program(*lines):
    """Return the persona of a summarizer that is a script."""
    argv = json.dumps(["sh", "-c", "\n".join(lines)])
    return f"summarizer: {{adapter: command, command: {argv}}}"


def one_handoff(found, *between):
    """Play a session that is handed off, its summarizer, and the session that finishes."""
    found.model.play(
        found.call(1, 20),
        found.call(2, 81),
        *between,
        found.call(3, 10),
        Text("all done", found.filled(11)),
    )


def assert_gone_on(found, how, words):
    """Check that one checkpoint was made in this way, and that the work is done."""
    found.assert_nothing_cut(1, 2, 3)
    (text,) = found.checkpoints
    assert checkpoint.parse(text).content(CheckpointSection.REMAINING_WORK).strip()
    assert found.openings[-1].text.count(MARK) == 1
    made = [one for one in found.rekindle.events("summary.made") if one["document"] == "checkpoint"]
    assert [one["how"] for one in made] == [how]
    assert words in made[0].get("words", "")
    assert [one["exit"] for one in found.rekindle.events("launch.ended")] == ["handoff", "clean"]


@pytest.mark.torture
@pytest.mark.parametrize(
    "said", in_ci(["###", "I cannot help with that.", '{"Completed Work": []}'], 1)
)
def test_an_answer_that_cannot_be_used(found, asked, said):
    """Rubbish, a refusal or half an answer is retried once; then no model is asked."""
    script = (f"grep -o 'sections of the .*' >> {asked}", f"printf %s {shlex.quote(said)}")
    found.begin(80, runtime="", summarizer=program(*script))
    one_handoff(found)
    found.run("--once")
    assert asked.read_text().count("checkpoint") == 2
    assert_gone_on(found, "mechanical", "the summarizer's answer")


def test_a_second_answer_that_can_be_used(found, asked):
    script = (f"test -e {asked} && exec {shlex.join(SCRIBE)}", f"touch {asked}", "echo nothing")
    found.begin(80, runtime="", summarizer=program(*script))
    one_handoff(found)
    found.run("--once")
    assert asked.exists()
    assert_gone_on(found, "headless", "")
    assert "fix whatever 2 leaves open" in found.openings[-1].text


@pytest.mark.torture
@pytest.mark.parametrize(
    ("dies", "words"),
    in_ci([("kill -9 $$", "-9"), ("exit 3", "3"), ("exec /no/such", "no/such")], 0),
)
def test_a_summarizer_that_dies(found, asked, dies, words):
    found.begin(80, runtime="", summarizer=program(f"echo once >> {asked}", dies))
    one_handoff(found)
    found.run("--once")
    assert asked.exists()
    assert_gone_on(found, "mechanical", words)


def test_a_summarizer_that_hangs(found, place, asked):
    """It is ended after its timeout, with everything that it started."""
    found.begin(80, runtime="", summarizer=program(f"echo once >> {asked}", "sleep 613"))
    one_handoff(found)
    run = place.start(
        [sys.executable, "-I", "-c", IMPATIENT, "run", "trades", "--once"],
        env=found.cli.environment(LC_ALL="C.UTF-8"),
        cwd=found.project,
    )
    assert run.wait() == 0, run.out + run.err
    assert asked.exists()
    assert_gone_on(found, "mechanical", "took longer than 1.5 s")
    assert [argv for argv in place.processes() if "613" in argv] == []


def test_a_supervisor_that_is_killed_while_it_is_summarized(found, place, asked):
    """The next supervisor asks again: there is one checkpoint, and no second handoff."""
    found.begin(80, runtime="", summarizer=program(f"echo once >> {asked}", "sleep 613"))
    one_handoff(found)
    run = found.rekindle.start("run", "trades")
    place.wait_for(asked.exists)
    run.signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert found.checkpoints == []
    found.write(80, runtime="", summarizer=program(f"exec {shlex.join(SCRIBE)}"))
    found.run("--once")
    assert_gone_on(found, "headless", "")
    assert len(found.rekindle.events("handoff.triggered")) == 1


@pytest.mark.torture
@pytest.mark.parametrize(
    ("by", "document"),
    in_ci([*itertools.product(("keys", "stop"), ("checkpoint", "relay"))], 1, 2),
)
def test_a_stop_during_the_summary(found, place, asked, by, document):
    """It takes effect at once; the next run writes the missing checkpoint, once."""
    hangs = program(f"echo once >> {asked}", "sleep 613")
    found.begin(80, runtime="", summarizer=hangs)
    if document == "checkpoint":
        one_handoff(found)
    else:
        found.model.play(found.call(1, 20), Text("all done", found.filled(21)))
    run = found.rekindle.start("run", "trades")
    place.wait_for(asked.exists)
    if by == "stop":
        found.rekindle("stop", "trades")
    else:
        run.signal(signal.SIGINT)
        run.signal(signal.SIGINT)
    run.wait()
    assert [argv for argv in place.processes() if "613" in argv] == []
    made = found.rekindle.events("summary.made")
    assert (made, found.checkpoints, found.rekindle.events("cycle.ended")) == ([], [], [])
    found.write(80, runtime="", summarizer=program(f"exec {shlex.join(SCRIBE)}"))
    found.run("--once")
    made = found.rekindle.events("summary.made")
    assert [one["document"] for one in made if one["document"] == document] == [document]
    assert len(found.rekindle.events("cycle.ended")) == 1
    assert len(found.rekindle.events("handoff.triggered")) == (document == "checkpoint")


def test_an_agent_without_archived_transcripts_is_handed_off_too(found):
    """The CLI's own transcript is read while it exists."""
    scribe = program(f"exec {shlex.join(SCRIBE)}")
    found.begin(80, runtime="archive: {transcripts: false}", summarizer=scribe)
    one_handoff(found)
    found.run("--once")
    assert_gone_on(found, "headless", "")
    assert "fix whatever 2 leaves open" in found.openings[-1].text
    assert list((found.project / ".rekindle/agents/trades").glob("transcripts/*.gz")) == []


def test_a_summarizer_that_wants_to_write(found):
    """The real CLI has no tool to write with, whatever its model calls."""
    found.begin(80, runtime="")
    made = str(found.project / "made")
    one_handoff(
        found,
        ToolCall("Write", {"file_path": made, "content": "x"}),
        ToolCall("Bash", {"command": f"touch {made}", "description": "d"}),
        ToolCall("StructuredOutput", ANSWER),
    )
    found.run("--once")
    assert not Path(made).exists()
    asking = [one for one in found.model.log.main if "The sections of the checkpoint" in one.text]
    assert len(asking) == 3, "it has tried both"
    assert all(part.is_error for part in asking[-1].results)
    assert_gone_on(found, "headless", "")
    assert "all there is of remaining work" in found.openings[-1].text


def test_more_than_a_summarizer_may_be_given(found):
    """The run halts and keeps everything; with a higher limit it continues from there."""
    found.begin(
        80, runtime="relay: {summarizer_max_input_tokens: 2000}", summarizer=program(*SCRIBE)
    )
    (found.project / "PROMPT.md").write_text("# Task\n" + "Ship the parser. " * 2_000)
    one_handoff(found)
    scribe = program(f"exec {shlex.join(SCRIBE)}")
    found.write(80, runtime="relay: {summarizer_max_input_tokens: 2000}", summarizer=scribe)
    run = found.rekindle.start("run", "trades")
    halted = _wait_for(found, "safe_mode.entered")
    assert "but a summarizer gets at most" in halted["words"]
    assert "summarizer_max_input_tokens" in halted["words"]
    assert len(found.rekindle.events("handoff.halted")) == 1
    assert found.checkpoints == []
    found.write(80, runtime="", summarizer=scribe)
    found.rekindle("restart", "trades")
    assert run.wait() == 0, run.out + run.err
    assert_gone_on(found, "headless", "")
    assert len(found.rekindle.events("handoff.triggered")) == 1


def _wait_for(found, kind):
    return found.rekindle.place.wait_for(lambda: (found.rekindle.events(kind) or [None])[-1])


def test_a_session_that_is_full_from_its_first_turn_on(found):
    """The run halts; with a higher threshold, a session that is equally full continues."""
    found.begin(80)
    found.model.play(found.call(1, 85), found.call(2, 85), Text("all done", found.filled(86)))
    run = found.rekindle.start("run", "trades")
    halted = _wait_for(found, "handoff.halted")
    assert "85 % full at the first turn" in halted["words"]
    assert "token_threshold_percent" in halted["words"]
    assert found.checkpoints == []
    assert "state:  needs you: " in found.rekindle("status", "trades")
    found.write(90)
    found.rekindle("restart", "trades")
    assert run.wait() == 0, run.out + run.err
    found.assert_nothing_cut(1, 2)
    assert len(found.checkpoints) == 1
    assert found.openings[-1].text.count(MARK) == 1


def test_two_handoffs_that_make_no_room(found):
    """There is no third handoff, because the agent would never make progress."""
    found.begin(80)
    turns = [found.call(1, 20), found.call(2, 81)]
    turns += [one for n in (3, 5) for one in (found.call(n, 75), found.call(n + 1, 81))]
    found.model.play(*turns, Text("all done", found.filled(11)))
    run = found.rekindle.start("run", "trades")
    halted = _wait_for(found, "handoff.halted")
    assert "2 handoffs in a row have hardly freed any room" in halted["words"]
    assert "split this work" in halted["words"]
    assert len(found.rekindle.events("handoff.triggered")) == 3
    assert len(found.checkpoints) == 2
    found.assert_nothing_cut(1, 2, 3, 4, 5, 6)
    found.rekindle("restart", "trades")
    assert run.wait() == 0, run.out + run.err
    assert len(found.checkpoints) == 3


def test_sessions_without_visible_work(found):
    """However much room each has: after two in a row the run waits for a person."""
    found.begin(80)
    only = found.bash("true")
    read = [ToolCall(only.name, only.input, found.filled(share)) for share in (10, 81)]
    found.model.play(found.call(1, 20), found.call(2, 81), *read, *read, Text("all done"))
    run = found.rekindle.start("run", "trades")
    halted = _wait_for(found, "handoff.halted")
    assert "no file in git, no commit and no open loop" in halted["words"]
    assert len({one["work"] for one in found.rekindle.events("handoff.triggered")}) == 1
    status = found.rekindle("status", "trades")
    assert "handoffs in this cycle: 2" in status, "the third is none"
    assert "→ rekindle answer trades-1 retry" in status
    found.rekindle("restart", "trades")
    assert run.wait() == 0, run.out + run.err
    assert [one["count"] for one in found.rekindle.events("handoff.resumed")] == [1, 2, 3]


def test_run_once_reports_why_it_halts(found):
    """It leaves a question; the next attempt continues."""
    found.begin(80)
    found.model.play(found.call(1, 85), Text("all done", found.filled(11)))
    assert "85 % full at the first turn" in found.run("--once", code=22)
    (halted,) = found.rekindle.events("handoff.halted")
    assert "85 % full" in halted["words"]
    [asked] = found.rekindle.events("question.asked")
    assert asked["about"] == "handoff"
    found.run("--once")
    assert len(found.checkpoints) == 1
    assert found.openings[-1].text.count(MARK) == 1
