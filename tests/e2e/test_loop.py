"""Cycles of the real Claude Code, whose model does well, repeats itself, waits, writes rubbish.

Each run ends as the ladder says; the test reads what a cycle is told in the model's requests.
"""

import shlex
import subprocess
import sys

import pytest

from e2e.sandbox import TASK, Rekindle, bash
from loopback.script import Text, ToolCall
from rekindle.policy.text import token_estimate
from sampling import WHOLE

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
    cycles: 10
personas:
  default: {permissions: {allowed_tools: [Bash]}}
"""
SIGNAL = "STALL DETECTED: previous cycle produced same next action."
RELAY = """\
## Current Phase
{phase}

## What We Did This Cycle
- {did}

## Key Decisions Made
- Plain files over a database: nothing to install (2026-04-09)

## Next Action
{next}
"""
THINGS = [
    "lexer",
    "parser",
    "printer",
    "cache",
    "server",
    "client",
    "logger",
    "router",
    "scheduler",
    "packer",
]


class Loop:
    def __init__(self, rekindle, model):
        self.rekindle, self.model, self.project = rekindle, model, rekindle.project
        self.draft = self.project / ".rekindle/drafts/trades/relay.md"
        self.relay = self.project / ".rekindle/agents/trades/memories/consensus.md"

    def writes(self, text, path=None):
        return ToolCall("Write", {"file_path": str(path or self.draft), "content": text})

    def play(self, *cycles):
        """Play the model's actions of each cycle, then its last answer."""
        self.model.play(*(step for steps in cycles for step in (*steps, Text("done."))))

    def run(self, *words, code=24):
        started = self.rekindle.start("run", "trades", "--once", *words)
        assert started.wait() == code, started.out + started.err
        return started.out + started.err

    @property
    def ended(self):
        return self.rekindle.events("cycle.ended")

    @property
    def verdicts(self):
        return [one.get("verdict", "") for one in self.ended]

    @property
    def openings(self):
        """Return the first prompt of each session."""
        return [one.text for one in self.model.log.main if not one.results]

    def commits(self):
        """Return the commits of the audit trail, without those that the test itself caused."""
        said = subprocess.run(
            ["git", "log", "--format=%s", "rekindle/trades/relay"],
            cwd=self.project,
            capture_output=True,
            text=True,
            check=True,
        )
        return said.stdout.splitlines()

    def assert_kept(self):
        """Check that the relay is under its cap and that every relay is a commit."""
        assert token_estimate.estimate_tokens(self.relay.read_text()) <= 2_000
        committed = self.rekindle.events("relay.committed")
        assert len(self.commits()) == len(committed)
        numbers = [one["cycle"] for one in self.ended]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.fixture
def loop(claude, place, model):
    (claude.project / "rekindle.yaml").write_text(MANIFEST)
    (claude.project / "PROMPT.md").write_text(TASK)
    (claude.project / ".gitignore").write_text(".rekindle\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
        named = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *named, *words], cwd=claude.project, check=True)
    return Loop(Rekindle(claude, place), model)


def relay(directive, did="looked at it", phase="Build the toolchain"):
    return RELAY.format(phase=phase, did=did, next=directive)


@pytest.mark.torture
def test_a_loop_that_progresses_has_all_its_cycles(loop):
    """It has ten of them; in CI five."""
    cycles = 10 if WHOLE else 5
    loop.play(
        *(
            [
                bash(f"echo x > {thing}.py"),
                loop.writes(relay(f"Write the {after}", f"wrote the {thing}")),
            ]
            for thing, after in zip(THINGS, [*THINGS[1:], "manual"], strict=True)
        )
    )
    out = loop.run("--cycles", str(cycles))
    assert f"out of cycles after cycle {cycles}" in out
    assert loop.verdicts == [""] + ["progress"] * (cycles - 1)
    assert {one["how"] for one in loop.ended} == {"draft"}
    assert not any(SIGNAL in opening for opening in loop.openings)
    for number, opening in enumerate(loop.openings[1:]):
        assert f"Write the {THINGS[number + 1]}" in opening, "the relay of the cycle before"
    assert str(loop.draft) in loop.openings[0]
    progress = (loop.project / ".rekindle/agents/trades/progress.md").read_text()
    assert progress.index(f"## Cycle {cycles}") < progress.index(f"## Cycle {cycles - 1}")
    assert not any("# Progress of" in opening for opening in loop.openings)
    loop.assert_kept()


def test_a_loop_that_repeats_itself_is_told_once_then_paused(loop):
    same = relay("Write the lexer")
    loop.play(*([loop.writes(same)] for _ in range(10)))
    out = loop.run(code=21)
    assert "without progress: asks for the same work, word for word: Write the lexer" in out
    assert out.count("runtime: stall: pause: false") == 1
    assert loop.verdicts == ["", "stalled", "stalled"]
    told = [SIGNAL in opening for opening in loop.openings]
    assert told == [False, False, True]
    assert "Repeated: Write the lexer" in loop.openings[2]
    assert "Tried without progress:\n- cycle 2: looked at it" in loop.openings[2]
    assert loop.rekindle.events("safe_mode.entered")[0]["why"] == "stalled"
    loop.assert_kept()


def test_the_same_directive_with_work_is_told_once_and_never_paused(loop):
    same = relay("Write the lexer, one rule after the other")
    loop.play(*([bash(f"echo x > {thing}.py"), loop.writes(same)] for thing in THINGS[:4]))
    loop.run("--cycles", "4")
    assert loop.verdicts == ["", "stalled", "stalled", "stalled"]
    assert [SIGNAL in opening for opening in loop.openings] == [False, False, False, True]


def test_a_loop_that_only_rewords_is_recorded_told_and_paused(loop):
    texts = [
        "Continue with more tests for the lexer",
        "Continue adding more tests to the lexer",
        "Continue and add more lexer tests",
        "Continue: more tests for the lexer",
        "Continue with more of the lexer tests",
    ]
    loop.play(*([loop.writes(relay(text))] for text in [*texts, *texts]))
    loop.run(code=21)
    assert len(loop.ended) == 4
    assert set(loop.verdicts[1:]) <= {"treadmill", "stalled"}
    assert [SIGNAL in opening for opening in loop.openings] == [False, False, False, True]
    loop.assert_kept()


def test_a_loop_that_alternates_is_seen_through(loop):
    loop.play(
        *(
            [loop.writes(relay("Write the lexer" if n % 2 else "Design the cache"))]
            for n in range(10)
        )
    )
    out = loop.run(code=21)
    assert "2 cycles ago" in out
    assert len(loop.ended) == 4
    assert sum(SIGNAL in opening for opening in loop.openings) == 1


def test_a_loop_that_waits_for_a_person_pauses_at_once_and_resumes_when_answered(loop):
    waiting = "Waiting for Ann to choose a grammar; nothing else can be done before"
    loop.play([loop.writes(relay("Write the lexer"))], [loop.writes(relay(waiting))])
    out = loop.run(code=22)
    assert "it waits for a person: Waiting for Ann" in out
    assert "; waiting: Waiting for Ann" in out
    assert '`rekindle answer trades-1 "TEXT"`' in out
    assert len(loop.ended) == 2
    loop.rekindle("answer", "trades", "Take", "the", "second", "one.")
    loop.play([loop.writes(relay("Write the parser for the second grammar"))])
    loop.run("--cycles", "3")
    assert "A person has answered: Take the second one." in loop.openings[2]
    assert "You were waiting for: Waiting for Ann" in loop.openings[2]
    assert loop.verdicts[-1] == "progress"
    loop.assert_kept()


def test_rubbish_is_set_aside_and_the_old_relay_carried_over(loop):
    (loop.project / "relay.md").write_text(relay("Write the lexer"))
    loop.rekindle("relay", "set", "relay.md")
    manifest = loop.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "runtime: {relay: {summarizer: mechanical}}\n")
    rubbish = ["lorem ipsum", "## Next Action\nTBD\n", "\0\1", "## Thoughts\nmany"]
    written = zip(THINGS, rubbish, strict=False)
    loop.play(*([bash(f"echo x > {it}.py"), loop.writes(text)] for it, text in written))
    loop.run("--cycles", "4")
    assert {one["how"] for one in loop.ended} == {"carried"}
    assert len(loop.rekindle.events("document.rejected")) == 4
    text = loop.relay.read_text()
    assert "Write the lexer" in text
    assert "tool call" in text, "what was done is not forgotten"
    loop.assert_kept()


def test_rubbish_and_nothing_else_is_told_and_paused(loop):
    manifest = loop.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "runtime: {relay: {summarizer: mechanical}}\n")
    loop.play(*([loop.writes("lorem ipsum")] for _ in range(10)))
    loop.run(code=21)
    assert {one["how"] for one in loop.ended} == {"carried"}
    assert len(loop.ended) == 4
    assert [SIGNAL in opening for opening in loop.openings] == [False, False, False, True]
    loop.assert_kept()


def test_where_nothing_is_written_a_summary_of_what_was_done_is(loop):
    answer = {
        "Current Phase": [{"text": "Building the toolchain", "turns": [1]}],
        "What We Did This Cycle": [{"text": "A lexer file came into being", "turns": [2]}],
        "Key Decisions Made": [{"text": "The lexer goes first", "turns": [2]}],
        "Active Projects": [],
        "Metrics": [],
        "Next Action": [{"text": "Give the lexer its rules", "turns": [2]}],
        "Open Questions": [],
    }
    loop.model.play(
        bash("echo x > lexer.py"),
        Text("done."),
        ToolCall("StructuredOutput", answer),
        Text("done."),
    )
    loop.run("--cycles", "1")
    (ended,) = loop.ended
    assert ended["how"] == "summary"
    assert "Give the lexer its rules" in loop.relay.read_text()
    (made,) = loop.rekindle.events("summary.made")
    assert made["how"] == "headless"
    assert made["run_usd"] > 0, "what it costs counts"


@pytest.mark.torture
def test_a_relay_that_grows_without_end_stays_under_its_cap(loop):
    """The test plays ten cycles; in CI four."""
    cycles, texts = 10 if WHOLE else 4, []
    for thing in THINGS:
        decisions = "".join(f"- Decision {n} about the {thing}: because\n" for n in range(400))
        text = relay(f"Write the {thing}", f"thought about the {thing}")
        texts.append(text.replace("## Next Action", decisions + "\n## Next Action"))
    loop.play(*([bash("echo x >> f.py"), loop.writes(text)] for text in texts))
    loop.run("--cycles", str(cycles))
    assert len(loop.ended) == cycles
    for committed in loop.rekindle.events("relay.committed"):
        assert committed["tokens"] <= 2_000
        assert committed["trimmed"]
    loop.assert_kept()


REPLACE = "import os, shutil, sys; shutil.copy(sys.argv[1], 'new'); os.replace('new', sys.argv[2])"
"""A program that the CLI does not inspect: its own rules refuse `cp` to the relay's file."""


def test_an_agent_that_edits_the_relay_itself_has_drafted(loop):
    manifest = loop.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("[Bash]", "[Bash, Write, Edit]"))
    texts = [relay(f"Write the {thing}", f"thought of the {thing}") for thing in THINGS]
    for n, text in enumerate(texts):
        (loop.project / f"relay-{n}").write_text(text)
    loop.play(
        *(
            [bash(shlex.join([sys.executable, "-c", REPLACE, f"relay-{n}", str(loop.relay)]))]
            for n in range(10)
        )
    )
    loop.run()
    assert [one["how"] for one in loop.ended] == ["edit"] * 10
    assert set(loop.verdicts[1:]) == {"progress"}
    assert loop.relay.read_text() == texts[-1]
    loop.assert_kept()


def test_the_run_is_complete_when_its_command_passes_and_never_before(loop):
    manifest = loop.project / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace(
            "cycles: 10", 'cycles: 4\n    until: ["test", "-e", "done.py"]'
        )
    )
    loop.play(
        [loop.writes(relay("Write the lexer"))],
        [bash("touch done.py"), loop.writes(relay("Write the parser"))],
    )
    assert "done and verified after cycle 2: the `until:` command passes" in loop.run(code=0)
    assert [one["until"] for one in loop.ended] == ["failed", "passed"]
    (loop.project / "done.py").unlink()
    loop.play(*([bash(f"touch {n}.py"), loop.writes(relay(f"Write the {n}"))] for n in THINGS))
    out = loop.run()
    assert "4 cycles, and `until:` does not pass" in out
    assert len(loop.ended) == 6


def test_a_next_action_that_a_person_sets_meanwhile_comes_next(loop):
    """The agent could not know of it when it wrote its draft."""
    (loop.project / "said.md").write_text(relay("Repair the server first"))
    said = f"{sys.executable} -I -m rekindle relay set said.md"
    loop.play([bash(said), loop.writes(relay("Write the parser", "wrote the lexer"))])
    loop.run("--cycles", "1")
    text = loop.relay.read_text()
    assert "Repair the server first" in text
    assert "wrote the lexer" in text
    assert "Write the parser" not in text


def test_a_topic_that_is_only_talked_about_is_told_and_paused(loop):
    """It needs options first, then a choice, then work; the next cycle is told what is missing."""
    manifest = loop.project / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace("cycles: 10", "cycles: 10\n    convergence: on")
    )
    options = "\n## Options\n1. A lexer by hand\n2. A lexer from a table\n"
    choice = "\n## Choice\nWinner: A lexer by hand\nPre-mortem: it could grow too large\n"
    talk = [f"Weigh the {thing} against what we know" for thing in THINGS]
    loop.play(
        [loop.writes(relay("Choose one") + options)],
        [loop.writes(relay("Begin with the first rule") + choice)],
        *([loop.writes(relay(text))] for text in talk),
    )
    out = loop.run(code=21)
    assert [one.get("owed", "") for one in loop.ended[:2]] == ["", ""]
    assert all(one["owed"] for one in loop.ended[2:])
    assert "This is the first cycle on this topic" in loop.openings[0]
    assert "This is the second cycle on this topic" in loop.openings[1]
    assert "only work counts now" in loop.openings[2]
    assert "The last cycle changed no file" in loop.openings[3]
    assert "changed no file" in out
    assert len(loop.ended) == 5
