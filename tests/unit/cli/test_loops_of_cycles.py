"""Cycle after cycle, as a person runs them, with a program in the place of the agent."""

import json
import subprocess
import sys

import pytest

from unit.cli.running.test_run_command import (
    Project,
    project,
)

__all__ = ["project"]

MANIFEST = """\
version: 1
agents:
  trades:
    harness: command
    command: [{python}, agent.py]
    cycles: {cycles}
{more}"""
AGENT = """\
import os, pathlib, subprocess, sys
folder = pathlib.Path(os.environ["REKINDLE_FOLDER"])
draft = folder.parents[1] / "drafts" / folder.name / "relay.md"
said = sys.stdin.read()
count = pathlib.Path("count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
pathlib.Path(f"prompt-{number}").write_text(said)
def relay(directive):
    draft.write_text(f"## Current Phase\\nBuild\\n\\n## Next Action\\n{directive}\\n")
def commit(name):
    pathlib.Path(name).parent.mkdir(exist_ok=True)
    with open(name, "a") as file: file.write(f"{number}\\n")
    named = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *named, "add", "-f", name], check=True)
    subprocess.run(["git", *named, "commit", "-qm", f"more of {name}"], check=True)
"""
SIGNAL = "STALL DETECTED"


class Loop:
    def __init__(self, project: Project):
        self.project, self.path = project, project.path
        self.has(cycles=10)
        ignored = "count\nprompt-*\n.rekindle\n"
        (self.path / ".gitignore").write_text(ignored)
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "begin")

    def git(self, *words):
        named = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *named, *words], cwd=self.path, check=True)

    def has(self, *, cycles=10, more=""):
        text = MANIFEST.format(python=sys.executable, cycles=cycles, more=more)
        (self.path / "rekindle.yaml").write_text(text)

    def agent(self, code):
        (self.path / "agent.py").write_text(AGENT + code)
        self.git("add", "-A")
        self.git("commit", "-qm", "another agent")

    def run(self, *words, code=24):
        return self.project("run", "--once", *words, code=code)

    def ended(self):
        lines = self.project("events", "--json", "--last", "0").out.splitlines()
        return [one for one in map(json.loads, lines) if one["kind"] == "cycle.ended"]

    def verdicts(self):
        return [one.get("verdict", "") for one in self.ended()]

    def prompt(self, number):
        return (self.path / f"prompt-{number}").read_text()


@pytest.fixture
def loop(project):
    return Loop(project)


@pytest.mark.parametrize(
    "made", ["draft.mkdir()", "os.mkfifo(draft)", "draft.symlink_to('/etc/passwd')"]
)
def test_an_odd_object_in_the_draft_s_place_is_moved_aside(loop, made):
    loop.agent(f"{made}\ncommit('a.py')")
    loop.run("--cycles", "3")
    assert [one["how"] for one in loop.ended()] == ["carried"] * 3
    drafts = loop.path / ".rekindle/drafts/trades"
    assert len(list(drafts.glob("relay.md*.rejected"))) == 3


def test_a_draft_that_is_far_too_large_is_kept_and_said(loop):
    loop.agent("draft.write_text('x' * 9_000_000)\ncommit('a.py')")
    out = loop.run("--cycles", "1")
    assert "the relay draft was invalid and was set aside" in out.err
    assert list((loop.path / ".rekindle/drafts/trades").glob("relay.md.rejected"))


def test_an_agent_that_works_and_writes_no_relay_is_not_on_a_treadmill(loop):
    loop.agent("commit(f'part-{number}.py')")
    loop.run("--cycles", "5")
    assert loop.verdicts() == ["progress"] * 5
    assert {one["how"] for one in loop.ended()} == {"carried"}


def test_a_file_that_every_cycle_changes_is_not_progress(loop):
    """The verdict of a cycle and the count of idle launches agree."""
    loop.agent("open('notes.txt', 'a').write('still at it')\nrelay('Write the lexer')")
    loop.run(code=21)
    assert loop.verdicts() == ["", "stalled", "stalled", "stalled"]
    assert [one.get("evidence", "") for one in loop.ended()] == ["1 changed file"] * 2 + [""] * 2


def test_one_that_neither_works_nor_writes_is_paused(loop):
    loop.agent("")
    loop.run(code=21)
    assert len(loop.ended()) == 4
    assert [SIGNAL in loop.prompt(n) for n in (1, 2, 3, 4)] == [False, False, False, True]


def test_an_answer_outlives_a_cycle_that_writes_nothing(loop):
    loop.agent("relay('Waiting for Ann to choose a grammar') if number == 1 else commit('a.py')")
    run = loop.run(code=22)
    assert "; waiting: Waiting for Ann to choose a grammar\n" in run.out
    assert '`rekindle answer trades-1 "TEXT"` continues; `runtime: stall: pause: false`' in run.err
    assert (run.out + run.err).count("`runtime: stall: pause: false`") == 1
    assert "runtime: stall" not in loop.project("status").out
    assert len(loop.ended()) == 1, "it waits from the first cycle on"
    loop.project("answer", "trades", "Take two.\nNot three.")
    loop.run("--cycles", "4")
    assert "A person has answered: Take two.\nNot three." in loop.prompt(2)
    assert "Take two.\nNot three." in loop.prompt(3)
    assert loop.verdicts()[1:] == ["progress"] * (len(loop.ended()) - 1)


def test_an_answer_that_is_too_long_is_refused_whole(loop):
    assert "8,000 characters" in loop.project("answer", "trades", "x" * 8_001, code=2).err


def test_runs_of_one_cycle_each_are_seen_through_too(loop):
    loop.agent("relay('Write the lexer')")
    loop.run("--cycles", "1")
    loop.run("--cycles", "1")
    assert "stalled" in loop.run("--cycles", "1", code=21).out
    assert [SIGNAL in loop.prompt(n) for n in (1, 2, 3)] == [False, False, True]


def test_a_wait_in_the_last_cycle_is_not_called_done(loop):
    loop.agent("relay('Write the lexer' if number == 1 else 'Waiting for Ann to reply')")
    found = loop.run("--cycles", "2", code=22)
    assert "needs you after cycle 2: it waits for a person" in found.err
    loop.project("answer", "trades", "Go on")
    events = loop.project("events", "--json", "--last", "3").out
    assert "Waiting for Ann to reply" in events


@pytest.mark.parametrize("name", ["logs/health.log", "memories/consensus.md"])
def test_commits_of_logs_and_relays_are_no_work(loop, name):
    loop.agent(f"commit({name!r})\nrelay('Write the lexer')")
    loop.run(code=21)
    assert loop.verdicts() == ["", "stalled", "stalled"]


def test_a_file_that_was_gone_before_does_not_count_as_work(loop):
    (loop.path / "sub").mkdir()
    (loop.path / "sub" / "gone.txt").write_text("x")
    loop.agent("relay('Write the lexer')")
    (loop.path / "sub" / "gone.txt").unlink()
    loop.run(code=21)
    assert loop.verdicts()[-1] == "stalled"


def test_three_directives_that_take_turns_are_seen_through(loop):
    loop.agent("relay(['Write the lexer', 'Design the cache', 'Start the server'][number % 3])")
    loop.run(code=21)
    assert len(loop.ended()) == 5
    assert "3 cycles ago" in loop.ended()[-1]["words"]


def test_until_hears_the_operator(loop):
    loop.has(cycles=3, more='    until: ["sleep", "60"]\n')
    loop.agent("relay('Write the lexer')")
    running = loop.project.start("run", "--once")
    loop.project.place.wait_for(lambda: "sleep" in str(loop.project.place.processes()))
    loop.project("stop")
    assert running.wait() == 130
    assert loop.ended() == [], "it is asked again by the next run"


def test_a_topic_with_work_and_no_options_is_not_called_a_stall(loop):
    loop.has(cycles=4, more="    convergence: on\n")
    loop.agent("commit(f'p{number}.py')\nrelay(f'Implement module number {number}')")
    loop.run()
    assert not any(SIGNAL in loop.prompt(n) for n in (1, 2, 3, 4))
    assert loop.verdicts()[1:] == ["progress"] * 3


def test_a_disputed_end_is_accepted_and_the_supervisor_ends(loop):
    """The agent reports its end and `until:` fails: a person accepts the report while it waits."""
    loop.has(more='    until: ["false"]\n')
    loop.agent("relay('DONE')")
    running = loop.project.start("run")
    loop.project.place.wait_for(lambda: "in safe mode" in running.out + running.err)
    [asked] = json.loads(loop.project("questions", "--json").out)["questions"]
    assert (asked["about"], asked["others"]) == ("disputed", ["TEXT", "accept", "stop"])
    assert "done, according to the agent" in loop.project("answer", "accept").out
    assert running.wait() == 20, running.out + running.err
    assert "although `until:` or the review failed" in running.out
    [row] = json.loads(loop.project("status", "--json").out)["agents"]
    assert (row["state"], row["outcome"], row["command"]) == ("done", "done-unverified", "")
    assert "No open questions." in loop.project("questions").out


NEWER = """\
def newer(name, text):
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_text(text)
if number == 2:
    marked = "<!-- rekindle: {} 9 -->\\n## Next Action\\nX\\n"
    archived = [one.relative_to(folder) for one in (folder / "memories/archive").iterdir()]
    for name in ["memories/consensus.md", *archived]:
        newer(name, marked.format("relay"))
    newer("checkpoint.md", marked.format("checkpoint"))
    newer("brief.md", marked.format("brief"))
    newer("state.json", '{"v": 9, "agent": "trades"}')
    import json
    said = {"v": 1, "ts": "2026-04-09T12:00:00Z", "kind": "relay.proposed", "by": "agent"}
    record = json.dumps(said | {"text": marked.format("relay")})
    newer("run/inbox/00000000000000000001-planted.seg", f"\\n1 event {record}\\n")
relay(f"Do step {number + 1}")
"""


def test_files_that_look_newer_do_not_end_the_supervisor(loop):
    """An agent can write all of them: files that the sealed log does not name are set aside."""
    loop.agent(NEWER)
    loop.run("--cycles", "3")
    assert [one["how"] for one in loop.ended()] == ["draft"] * 3
    lines = loop.project("events", "--json", "--last", "0").out.splitlines()
    rejected = [one for one in map(json.loads, lines) if one["kind"] == "document.rejected"]
    assert all("has schema 9" in one["reason"] for one in rejected)
    names = ["brief", "checkpoint", "relay", "relay", "state"]
    assert sorted(one["document"] for one in rejected) == names
