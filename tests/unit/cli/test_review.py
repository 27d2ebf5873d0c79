"""`review:`: another persona verifies a reported end, as a person sees it."""

import json
import sys

import pytest

from unit.cli.running.test_run_command import project
from unit.cli.test_loops_of_cycles import Loop

__all__ = ["project"]

MORE = """\
    review: critic
{until}personas:
  critic: {{adapter: command, command: ["{python}", critic.py]}}
  summarizer: {{adapter: command, command: ["false"]}}
"""
PAID = """\
    review: critic
    budget: {usd: 5}
prices: {default: {input: 1, output: 1}}
personas:
  critic: {adapter: claude-code, model: small, permissions: {allowed_tools: [Read]}}
"""
DONE = "relay('DONE')\n"
CRITIC = """\
import os, pathlib, sys
pathlib.Path("asked").open("a").write(sys.stdin.read() + "\\n=====\\n")
assert os.environ["REKINDLE_ONE_SHOT"] == "1"
assert pathlib.Path("asked").resolve().parent == pathlib.Path.cwd()
"""
KILLED = """\
import os, signal, sys
from rekindle.cli import main
from rekindle.flows.cycles.judge_cycle import CycleJudge
CycleJudge.ended = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main.run(sys.argv[5:])
"""
"""A supervisor that is killed between the review and the end of the cycle."""


@pytest.fixture
def loop(project):
    return Loop(project)


def set_up(loop, critic, until=""):
    line = f"    until: {until}\n" if until else ""
    loop.has(more=MORE.format(python=sys.executable, until=line))
    (loop.path / "critic.py").write_text(CRITIC + critic)
    loop.agent(DONE)


def events_of(loop, kind):
    lines = loop.project("events", "--json", "--last", "0").out.splitlines()
    return [one for one in map(json.loads, lines) if one["kind"] == kind]


def reviews(loop):
    return (loop.path / "asked").read_text().count("=====") if (loop.path / "asked").exists() else 0


def test_an_end_that_the_reviewer_confirms_is_verified(loop):
    set_up(loop, "print('All of it is there.\\n\\nDONE')")
    out = loop.run(code=0).out
    assert "✓ trades: done and verified after cycle 1: the review agrees" in out
    asked = (loop.path / "asked").read_text()
    assert "Ship it." in asked
    assert "## Next Action\nDONE" in asked
    (made,) = events_of(loop, "review.made")
    assert (made["verdict"], made["persona"], made["cycle"]) == ("passed", "critic", 1)


def test_the_cost_of_a_review_counts_for_the_run(loop):
    """The reviewer is another CLI, with its own model and permissions."""
    loop.has(more=PAID)
    loop.agent(DONE)
    loop.project.claude(
        """
        open("argv", "w").write(" ".join(sys.argv))
        done("DONE", modelUsage={"small": {"inputTokens": 70, "outputTokens": 30}})
        """
    )
    loop.run(code=0)
    (made,) = events_of(loop, "review.made")
    assert (made["usd"], made["tokens"]) == (0.5, 100)
    (ended,) = events_of(loop, "launch.ended")
    assert ended["tokens"] > 0, "of the agent itself, estimated"
    assert made["run_tokens"] == ended["tokens"] + 100
    assert 0.5 < made["run_usd"] < 0.51
    assert "$0.50" in loop.project("status").out
    started = (loop.path / "argv").read_text()
    assert "--model=small" in started
    assert "--max-budget-usd=4.99" in started, "what the agent itself cost is gone"


def test_the_agent_is_told_what_the_reviewer_misses(loop):
    critic = "print('DONE' if pathlib.Path('count').read_text() == '2' else 'NOT DONE\\nno lexer')"
    set_up(loop, critic)
    assert "  ✗ the review does not agree: no lexer\n" in loop.run(code=0).out
    told = (loop.path / "prompt-2").read_text()
    assert "You reported that the work is done. A review does not agree." in told
    assert "no lexer" in told
    assert "STALL" not in told
    assert [one["verdict"] for one in events_of(loop, "review.made")] == ["failed", "passed"]
    assert reviews(loop) == 2


@pytest.mark.parametrize(("until", "count"), [('["true"]', 1), ('["false"]', 0)])
def test_until_and_review_must_agree(loop, until, count):
    """A reviewer is not paid for an end that `until:` refuses."""
    set_up(loop, "print('DONE')", until=until)
    ended = loop.run("--cycles", "1", code=0 if count else 24)
    agrees = "the `until:` command passes, and the review agrees"
    assert (agrees if count else "`until:` does not pass") in ended.out + ended.err
    assert reviews(loop) == count


def test_a_review_that_cannot_be_made_verifies_nothing(loop):
    set_up(loop, "sys.exit('no network')")
    found = loop.run(code=20)
    assert "the review failed" in found.out + found.err
    assert "no network" in found.out + found.err


def test_a_review_is_made_once_if_the_supervisor_is_killed_after_it(loop):
    """It is killed before the end of the cycle: the verdict is in the log."""
    set_up(loop, "print('DONE')")
    started = loop.project.start("run", "--once", through=[sys.executable, "-c", KILLED])
    assert started.wait() != 0
    assert reviews(loop) == 1
    loop.run(code=0)
    assert reviews(loop) == 1
    assert len(events_of(loop, "review.made")) == 1


def test_a_reviewer_that_does_not_exist_is_refused(loop):
    loop.has(more="    review: stranger\n")
    ended = loop.run(code=3)
    assert "there is no persona named 'stranger'" in ended.err
    assert "there is no persona named 'stranger'" in loop.project("doctor", code=8).out
