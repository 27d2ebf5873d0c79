"""`runtime.stall.ask`: the summarizer is asked about a stall, as a person sees it."""

import json
import sys

import pytest

from unit.cli.running.test_run_command import project
from unit.cli.test_loops_of_cycles import SIGNAL, Loop

__all__ = ["project"]

MORE = """\
personas:
  summarizer: {{adapter: command, command: ["{python}", oracle.py]}}
runtime:
  stall: {{ask: true}}
"""
ORACLE = """\
import json, pathlib, sys
with open(pathlib.Path(__file__).with_name("asked"), "a") as file:
    file.write(sys.stdin.read() + "=====")
answer = {"verdict": "progress", "quote": "Write the lexer and its tests", "evidence": "notes.txt"}
"""
JOTTING = """
open('notes.txt', 'a').write('still at it')
relay('Write the lexer and its tests')
"""


@pytest.fixture
def loop(project):
    loop = Loop(project)
    loop.has(more=MORE.format(python=sys.executable))
    with (loop.path / ".gitignore").open("a") as file:
        file.write("asked\n")
    return loop


def set_up(loop, answer, agent=JOTTING):
    (loop.path / "oracle.py").write_text(ORACLE + answer)
    loop.agent(agent)


def opinions(loop):
    return [one.get("opinion", "") for one in loop.ended()]


def test_a_pause_becomes_a_notice_once(loop):
    set_up(loop, "print(json.dumps(answer))")
    loop.run(code=21)
    assert opinions(loop) == ["", "", "", "progress", ""]
    assert loop.ended()[3]["opinion_words"] == "notes.txt: “Write the lexer and its tests”"
    assert SIGNAL in loop.prompt(5)
    asked = (loop.path / "asked").read_text()
    assert asked.count("=====") == 1
    assert "\n| Write the lexer and its tests\n" in asked
    assert "| notes.txt\n" in asked
    lines = loop.project("events", "--json", "--last", "0").out.splitlines()
    made = [one for one in map(json.loads, lines) if one["kind"] == "summary.made"]
    assert [one["document"] for one in made] == ["opinion"]
    assert made[0]["run_tokens"] >= 0


def test_without_an_answer_the_run_is_paused_as_usual(loop):
    set_up(loop, "sys.exit('no quota')")
    out = loop.run(code=21)
    assert opinions(loop) == ["", "", "", "unusable"]
    assert "there is no second opinion: " in out.err
    assert "no quota" in loop.ended()[3]["opinion_words"]


def test_an_agent_that_only_talks_is_paused_if_the_model_agrees(loop):
    set_up(
        loop,
        "answer = {'verdict': 'stuck', 'quote': 'Think about part number', 'evidence': 'none'}\n"
        "print(json.dumps(answer))",
        "relay('Think about part number ' + 'lexer parser printer linter tracer'.split()[number])",
    )
    out = loop.run(code=21)
    assert loop.verdicts() == ["", "progress", "progress", "progress"]
    assert opinions(loop) == ["", "", "", "stuck"]
    assert "a second opinion sees no progress: none: “Think about part number”" in out.out + out.err
