"""Windows of the real CLIs fill up: a fresh session continues from a checkpoint."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.handing import KINDS, MARK
from loopback.script import Parallel, Text, ToolCall
from rekindle.documents import checkpoint
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.harnesses.claude_code import claude_harness
from sampling import in_ci

pytestmark = pytest.mark.timeout(300)

SCRIBE = json.dumps([sys.executable, "-I", str(Path(__file__).with_name("scribe.py"))])
WINDOWS = [
    ("claude", 50, "claude-sonnet-4-5", 200_000),
    ("claude", 80, "claude-sonnet-4-5", 200_000),
    ("claude", 90, "claude-sonnet-4-5[1m]", 1_000_000),
    ("codex", 50, "gpt-5.5", 258_400),
    ("codex", 80, "gpt-6.1-terra", 475_000),
    ("codex", 90, "gpt-5.5", 258_400),
    ("gemini", 50, "gemini-2.5-flash", 1_048_576),
    ("gemini", 80, "gemini-2.5-pro", 1_048_576),
    ("gemini", 90, "gemma-4-31b-it", 256_000),
]


@pytest.fixture
def handing(request, place):
    """Create an agent of the requested CLI."""

    def made(kind):
        found, model = KINDS[kind]
        cli = request.getfixturevalue(kind)
        return found(cli, place, request.getfixturevalue(model))

    return made


@pytest.mark.torture
@pytest.mark.parametrize(("kind", "at", "named", "window"), in_ci(WINDOWS, 1, 2, 4, 6))
def test_the_first_boundary_past_the_threshold(handing, kind, at, named, window):
    """No earlier boundary stops the session, and no call is cut, parallel or failing."""
    found = handing(kind).begin(at, named=named, window=window)
    together = (found.call("a", seconds=0.5), found.call("b"), found.call("c", code=3))
    found.model.play(
        found.call(1, at - 20),
        found.call(2, at - 0.1),
        Parallel(together, found.filled(at)),
        *[found.call("never", at + 1)] * found.REPLIES,
        found.call(3, 10),
        Text("all done", found.filled(11)),
    )
    found.run("--once")
    found.assert_nothing_cut(1, 2, "a", "b", "c", 3)
    first, second = found.openings
    assert MARK not in first.text
    assert second.text.count(MARK) == 1
    assert len(found.model.log.main) == 5 + found.REPLIES
    (told,) = found.rekindle.events("handoff.triggered")
    assert (told["tokens"], told["window"]) == (-(-at * window // 100), window)
    assert (told["threshold"], told["by"]) == (at, "threshold")
    assert told["known"] == ("estimated" if kind == "gemini" else "reported")
    measured = found.rekindle.events("window.measured")
    # On a fast host the session may end before the first measurement is due.
    assert {(one["window"], one["known"]) for one in measured} <= {(window, told["known"])}
    (resumed,) = found.rekindle.events("handoff.resumed")
    assert resumed["count"] == 1
    handed, finished = found.rekindle.events("launch.ended")
    assert (handed["exit"], finished["exit"]) == ("handoff", "clean")
    # With or without a final report, spent tokens stay spent.
    used = [-int(-share * window // 100) for share in (at - 20, at - 0.1, at)]
    assert sum(used) < handed["run_tokens"] < finished["run_tokens"]


@pytest.mark.torture
@pytest.mark.parametrize("kind", in_ci([*KINDS], 0, 1))
def test_a_sub_agent(handing, kind):
    """Its usage never counts, and its work is not cut when its session's window is full."""
    found = handing(kind).begin(80)

    def at(share, *calls):
        return [ToolCall(one.name, one.input, found.filled(share)) for one in calls]

    (first, *wait), (second, *wait_again) = found.asking("first"), found.asking("second")
    found.model.play(
        found.call(1, 20),
        *at(30, first, *wait),
        found.call(2, 40),
        Parallel((second, found.call("p")), found.filled(85)),
        *at(85, *wait_again),
        *[found.call("never", 87)] * found.REPLIES,
        found.call(3, 10),
        Text("all done", found.filled(11)),
    )
    answered = ToolCall("complete_task", {"result": {"response": "nothing to see"}})
    over = answered if kind == "gemini" else Text("nothing to see")
    below = [[found.call(name, 85, 0.6) for name in names] for names in ("st", "uv")]
    found.model.play(*below[0], over, *below[1], over, to=found.SUBAGENT)
    found.run("--once")
    found.assert_nothing_cut(1, *"stuv", 2, "p", 3)
    (told,) = found.rekindle.events("handoff.triggered")
    assert told["tokens"] == -(-85 * found.window // 100)
    assert [MARK in one.text for one in found.openings] == [False, True]


@pytest.mark.torture
@pytest.mark.parametrize("kind", in_ci([*KINDS], 0, 1))
def test_three_handoffs_in_one_cycle(handing, kind):
    """Each carries the remaining work over; a session gets the latest, the archive has all."""
    persona = f"summarizer: {{adapter: command, command: {SCRIBE}}}"
    found = handing(kind).begin(80, runtime="", summarizer=persona)
    turns = []
    for number in (1, 2, 3):
        turns += [found.call(number, 20), found.call(f"{number}x", 81)]
        turns += [found.call("never", 82)] * found.REPLIES
    found.model.play(*turns, found.call(4, 10), Text("all done", found.filled(11)))
    found.run("--once")
    found.assert_nothing_cut(1, "1x", 2, "2x", 3, "3x", 4)
    assert len(found.checkpoints) == 3
    kept = [checkpoint.parse(text) for text in found.checkpoints]
    left = [one.content(CheckpointSection.REMAINING_WORK) for one in kept]
    for number, text in enumerate(left, 1):
        told = [name in text for name in ("fix whatever 1 ", "fix whatever 2 ", "fix whatever 3 ")]
        assert told == [number >= one for one in (1, 2, 3)], text
    assert [one.text.count(MARK) for one in found.openings] == [0, 1, 1, 1]
    for number, opening in enumerate(found.openings[1:]):
        assert left[number].strip() in opening.text
        assert "3 came to its close" in opening.text or number < 2
        assert number == 0 or f"{number} came to its close" not in opening.text
    counted = [one["count"] for one in found.rekindle.events("handoff.resumed")]
    assert counted == [1, 2, 3]
    made = [one for one in found.rekindle.events("summary.made") if one["document"] == "checkpoint"]
    assert [one["how"] for one in made] == ["headless"] * 3


def test_the_percentage_is_the_cli_s_own(handing, claude):
    """It equals Claude Code's own figure for a resumed session; other CLIs report none."""
    found = handing("claude").begin(80)
    shares = (13.3, 50, 79.6, 92)  # it does not believe less than its own prompt takes
    found.model.play(*(Text("well", found.filled(share)) for share in shares))
    asked = claude_harness.measure((str(claude.program),))
    with subprocess.Popen(
        claude.network.argv([one for one in asked.argv if one != "--no-session-persistence"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=claude.environment(),
        cwd=found.project,
    ) as running:

        def told(line, kind):
            running.stdin.write(line)
            running.stdin.flush()
            lines = (json.loads(one) for one in running.stdout)
            return next(one for one in lines if one["type"] == kind)

        for share in shares:
            content = [{"type": "text", "text": "hello"}]
            prompt = {"type": "user", "message": {"role": "user", "content": content}}
            session = told(json.dumps(prompt) + "\n", "result")["session_id"]
            answer = told(asked.asked, "control_response")
            windows = claude_harness.parse_window_sizes([json.dumps(answer).encode()])
            ours = claude_harness.usage(claude.transcript(session).read_bytes(), windows)
            theirs = answer["response"]["response"]["percentage"]
            assert abs(ours.percent - theirs) <= 1
            assert abs(ours.percent - share) < 0.1, "the fault would show"
        running.stdin.close()


SERVER = """\
import pathlib
pathlib.Path({seen!r}).write_text("server")
"""


def test_measuring_runs_no_hooks_or_servers_of_the_person(handing, claude):
    """It still reports the model that the person's settings name."""
    found = handing("claude").begin(80, named="claude-sonnet-4-5[1m]", window=1_000_000)
    seen = claude.home / "seen"
    settings = found.project / ".claude/settings.json"
    said = json.loads(settings.read_text())
    said["hooks"] = {
        event: [
            {
                "hooks": [
                    {"type": "command", "command": f"echo {event} $REKINDLE_ONE_SHOT >> {seen}"}
                ]
            }
        ]
        for event in ("SessionStart", "SessionEnd", "Setup")
    }
    said["enableAllProjectMcpServers"] = True
    settings.write_text(json.dumps(said))
    (found.project / "server.py").write_text(SERVER.format(seen=str(seen)))
    servers = {"mine": {"command": sys.executable, "args": [str(found.project / "server.py")]}}
    (found.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    asked = claude_harness.measure((str(claude.program),))
    started = subprocess.run(
        claude.network.argv([*asked.argv]),
        input=asked.asked.encode(),
        env={**claude.environment(), **asked.environment},
        cwd=found.project,
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    windows = claude_harness.parse_window_sizes(started.stdout.splitlines())
    assert windows == {"claude-sonnet-4-5[1m]": 1_000_000}
    assert not seen.exists(), seen.read_text()
