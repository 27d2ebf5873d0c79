"""Handoffs on request, handoffs in a terminal, and a CLI that compacts by itself."""

import contextlib
import json
import signal
import sys

import pytest

from desk import Desk
from e2e.handing import MARK, HandingClaude, HandingCodex
from e2e.sandbox import bash
from e2e.test_terminal import ALONE
from fakes import fakes
from loopback.anthropic import COMPACTION, too_long
from loopback.sandbox import KEY
from loopback.script import Forever, Hang, Text, ToolCall
from rekindle.stores.folders.private_files import find_private_project

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def handing(claude, place, model):
    return HandingClaude(claude, place, model).begin(80)


def test_a_handoff_is_requested_by_hand(handing):
    """With any fill level it happens at the next boundary, and none of the calls is cut."""
    waits = Hang(bash("touch done-1"))
    handing.model.play(waits, bash("touch done-2"), Text("all done"))
    running = handing.rekindle.start("run", "trades", "--once")
    handing.model.log.wait_for(lambda request: request.step is waits, timeout=120)
    said = handing.rekindle("handoff", "trades")
    assert "will stop between two tool calls" in said
    handing.rekindle.place.wait_for(
        lambda: (
            any(find_private_project(handing.project).agent("trades").launch.glob("brake-*"))
            or None
        )
    )
    wait_for_rule(handing)
    waits.release.set()
    assert running.wait() == 0, running.err
    assert (handing.project / "done-1").exists()
    assert (handing.project / "done-2").exists()
    (told,) = handing.rekindle.events("handoff.triggered")
    assert told["by"] == "person"
    first, second = handing.openings
    assert MARK not in first.text
    assert MARK in second.text
    assert "as requested" in running.out


def test_a_handoff_keeps_processes_of_the_manifest_and_names_the_ended_ones(handing):
    """The real CLI has a server and a build in the background, both without an environment."""
    manifest = handing.project / "rekindle.yaml"
    entry = "    prompt: PROMPT.md\n"
    manifest.write_text(manifest.read_text().replace(entry, entry + '    keep: ["sleep 601"]\n'))
    starts = "env -i setsid sleep {} >/dev/null 2>&1 </dev/null & disown"
    ends = Hang(Text("all done"))
    handing.model.play(
        bash("; ".join(map(starts.format, (601, 602)))), filled := Hang(bash("true")), ends
    )
    running = handing.rekindle.start("run", "trades")
    handing.model.log.wait_for(lambda request: request.step is filled, timeout=120)
    handing.rekindle("handoff", "trades")
    wait_for_rule(handing)
    filled.release.set()
    told = handing.model.log.wait_for(lambda request: request.step is ends, timeout=120)
    alive = [words for words in handing.rekindle.place.processes() if words[0] == "sleep"]
    assert alive == [["sleep", "601"]]
    assert "- ended with the session: “sleep 602”" in told.text
    ends.release.set()
    assert running.wait() == 0, running.err
    alive = [words for words in handing.rekindle.place.processes() if words[0] == "sleep"]
    assert alive == [], "the run is over"


def wait_for_rule(handing):
    """Wait until the supervisor knows of it: then its rule says "at once"."""
    rules = find_private_project(handing.project).agent("trades").launch

    def is_asked():
        return any(b"\nlimit 0\n" in path.read_bytes() for path in rules.glob("brake-*"))

    handing.rekindle.place.wait_for(lambda: is_asked() or None)


def test_nothing_runs_and_nothing_is_handed_off(handing):
    started = handing.rekindle.start("handoff", "trades")
    assert started.wait() != 0
    assert "is not running, so there is nothing to hand off" in started.err
    assert handing.rekindle.events("handoff.requested") == []


def test_a_checkpoint_is_written_before_the_cli_compacts(handing):
    """Its own summary may lose anything; the session gets the checkpoint afterwards."""
    handing.write(100)
    handing.model.play(bash("touch made"), too_long(), Text("all done"))
    handing.model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    handing.run()
    assert handing.model.log.side[-1].kind == COMPACTION
    (made,) = handing.rekindle.events("checkpoint.committed")
    (compacted,) = handing.rekindle.events("session.compacted")
    assert made["seq"] > compacted["seq"]
    after = handing.model.log.main[-1].text
    assert "Before it was compacted:" in after
    assert "`made`" in after.split("Before it was compacted:")[1]
    assert handing.rekindle.events("handoff.triggered") == []


def test_a_checkpoint_before_a_compaction_has_the_person_s_words_alone(handing):
    """Neither our primer nor a secret is in it, or in the checkpoints that follow it."""
    handing.write(90)
    secret = next(fakes(20260409, 1))
    command = f"touch made; : {secret.line}"
    handing.model.play(
        ToolCall("Bash", {"command": command, "description": "d"}),
        too_long(),
        handing.call(2, 91),
        handing.call(3, 10),
        Text("all done"),
    )
    handing.model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    handing.run("--once")
    first, second = handing.checkpoints
    for one in (first, second):
        assert "Ship the parser" in one
        assert "drafts/trades/relay.md" not in one
        assert "write the relay for the next one" not in one
        assert secret.secret not in one


@pytest.fixture
def sit(network):
    with contextlib.ExitStack() as seats:

        def begin(rekindle):
            argv = [sys.executable, "-I", "-m", "rekindle", "run", "trades"]
            env = rekindle.cli.environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
            desk = Desk(
                network.argv([*ALONE, *argv]), env=env, cwd=rekindle.project, size=(100, 30)
            )
            return seats.enter_context(desk)

        yield begin


@pytest.fixture
def staying(handing, sit, claude):
    """Create the agent in the terminal of a person who has used its CLI before."""
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]]},
        "projects": {str(claude.project): {"hasTrustDialogAccepted": True}},
    }
    (claude.home / ".claude.json").write_text(json.dumps(known))
    text = (handing.project / "rekindle.yaml").read_text()
    (handing.project / "rekindle.yaml").write_text(
        text.replace('    cycles: 1\n    until: ["true"]\n', "    mode: stay\n")
    )
    kept = claude.home / ".claude/projects"

    def is_written(word):
        return any(word in path.read_text() for path in kept.glob("*/*.jsonl")) or None

    def sits():
        return sit(handing.rekindle), lambda word: handing.rekindle.place.wait_for(
            lambda: is_written(word)
        )

    return sits


LONG = "count the stars, " + "and the sand, " * 1_000 + "and tell me"


def test_a_session_in_a_terminal_is_handed_off_at_its_person_s_next_prompt(handing, staying):
    """The fresh session gets the prompt, however long; nothing on the screen is cut."""
    handing.model.play(
        ToolCall("Bash", {"command": "touch made"}, handing.filled(70)),
        Text("zebras", handing.filled(85)),
        Forever(Text("yaks", handing.filled(5))),
    )
    desk, wait_until_written = staying()
    desk.wait_for("zebras")
    # It writes its transcript a moment later; no person is faster than that.
    wait_until_written("zebras")
    desk.type(f"\x1b[200~{LONG}\x1b[201~")
    desk.wait_for("Pasted")
    desk.type("\r")
    desk.wait_for("its window is 85 % full: stopped; a fresh session continues")
    desk.wait_for("a checkpoint was written")
    desk.wait_for("yaks")
    last = handing.model.log.main[-1].text
    assert LONG in last
    assert MARK in last


def test_a_prompt_in_the_meantime_cuts_nothing(handing, staying):
    """The session may finish that prompt, full as it is; the next prompt hands it off."""
    handing.model.play(
        handing.call("a", 20),
        handing.call("long", 86, 3.0),
        Text("zebras", handing.filled(87)),
        Forever(Text("yaks", handing.filled(88))),
    )
    desk, wait_until_written = staying()
    handing.rekindle.place.wait_for(lambda: (handing.project / "began-long").exists() or None)
    desk.type("now count the stars")
    desk.type("\r")
    desk.wait_for("zebras")
    handing.assert_nothing_cut("a", "long")
    assert handing.rekindle.events("handoff.triggered") == []
    wait_until_written("zebras")
    asked = handing.model.log.main[-1].text
    assert "now count the stars" in asked


def test_a_sub_agent_in_the_background_is_not_cut(handing):
    """The session is stopped at a boundary without a working sub-agent, or not at all."""
    asked = {"description": "d", "prompt": "first", "subagent_type": "general-purpose"}
    handing.model.play(
        ToolCall("Agent", {**asked, "run_in_background": True}, handing.filled(30)),
        handing.call(1, 85, 1.0),
        handing.call(2, 86),
        Text("all done", handing.filled(87)),
        Text("it is told of it", handing.filled(88)),
    )
    handing.model.play(handing.call("s", 10, 4.0), Text("nothing"), to=handing.SUBAGENT)
    handing.run()
    handing.assert_nothing_cut(1, 2, "s")
    assert handing.rekindle.events("handoff.triggered") == []


def test_a_hold_that_is_given_up_cuts_nothing(codex, place, openai_model):
    """A late supervisor finds no mark: the call runs, and the next one is held."""
    found = HandingCodex(codex, place, openai_model).begin(80)
    waits = Hang(found.call("late", 86, 2.0))
    found.model.play(
        found.call(1, 20),
        found.call(2, 85),
        waits,
        found.call("never", 87),
        found.call(3, 10),
        Text("all done", found.filled(11)),
    )
    running = found.rekindle.start("run", "trades")
    found.model.log.wait_for(lambda request: request.step is waits, timeout=120)
    running.signal(signal.SIGSTOP)
    waits.release.set()
    place.wait_for(lambda: (found.project / "began-late").exists() or None, 30)
    running.signal(signal.SIGCONT)
    assert running.wait() == 0, running.out + running.err
    found.assert_nothing_cut(1, 2, "late", 3)
    assert len(found.rekindle.events("handoff.triggered")) == 1
