"""A handoff that somebody asks for; one in a terminal; and a CLI that compacts by itself."""

import contextlib
import json
import sys

import pytest

from desk import Desk
from e2e.handing import MARK, HandingClaude
from e2e.sandbox import TASK, bash
from e2e.test_terminal import ALONE
from loopback.anthropic import COMPACTION, too_long
from loopback.sandbox import KEY
from loopback.script import Forever, Hang, Text, ToolCall

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def handing(claude, place, model):
    return HandingClaude(claude, place, model).begin(80)


def test_a_handoff_is_asked_for_by_hand(handing):
    """However empty the window is: at the next boundary, and none of the calls is cut."""
    waits = Hang(bash("touch done-1"))
    handing.model.play(waits, bash("touch done-2"), Text("all done"))
    running = handing.rekindle.start("run", "trades", "--once")
    handing.model.log.wait_for(lambda request: request.step is waits, timeout=60)
    said = handing.rekindle("handoff", "trades")
    assert "is stopped between two of its tool calls" in said
    handing.rekindle.place.wait_for(
        lambda: any((handing.project / ".rekindle/agents/trades/run").glob("brake-*")) or None
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
    assert "as was asked" in running.out


def wait_for_rule(handing):
    """Until the supervisor has heard of it: its rule then says, at once."""
    run = handing.project / ".rekindle/agents/trades/run"

    def is_asked():
        return any(path.read_bytes().split(b"\n")[1] == b"0" for path in run.glob("brake-*"))

    handing.rekindle.place.wait_for(lambda: is_asked() or None)


def test_nothing_runs_and_nothing_is_handed_off(handing):
    started = handing.rekindle.start("handoff", "trades")
    assert started.wait() != 0
    assert "does not run: there is nothing to hand off" in started.err
    assert handing.rekindle.events("handoff.asked") == []


def test_what_the_cli_compacts_is_written_down_before(handing):
    """Its own summary may lose anything; the checkpoint is there, and is told after it."""
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


def test_a_session_in_a_terminal_is_handed_off_at_its_person_s_next_prompt(handing, sit, claude):
    """What they have asked goes along; nothing that they were looking at is cut."""
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]]},
        "projects": {str(claude.project): {"hasTrustDialogAccepted": True}},
    }
    (claude.home / ".claude.json").write_text(json.dumps(known))
    text = (handing.project / "rekindle.yaml").read_text()
    (handing.project / "rekindle.yaml").write_text(
        text.replace("    cycles: 1\n", "    mode: stay\n")
    )
    (handing.project / "PROMPT.md").write_text(TASK)
    handing.model.play(
        ToolCall("Bash", {"command": "touch made"}, handing.filled(70)),
        Text("zebras", handing.filled(85)),
        Forever(Text("yaks", handing.filled(5))),
    )
    desk = sit(handing.rekindle)
    desk.wait_for("zebras")
    # It writes its transcript a moment later; no person is as fast as that.
    kept = claude.home / ".claude/projects"
    handing.rekindle.place.wait_for(
        lambda: any("zebras" in path.read_text() for path in kept.glob("*/*.jsonl")) or None
    )
    desk.type("now count the stars")
    desk.wait_for("stars")
    desk.type("\r")
    desk.wait_for("its window is 85 % full: stopped, for a fresh session to go on")
    desk.wait_for("a checkpoint was written")
    desk.wait_for("yaks")
    last = handing.model.log.main[-1].text
    assert "now count the stars" in last
    assert MARK in last
