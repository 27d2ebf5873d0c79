"""`rekindle run` as a person runs it, with a program in the place of the CLI."""

import json
import os
import signal
import stat
import sys
from textwrap import dedent

import pytest

from rekindle.wiring.access.trust_checks import accept_folder

UNVERIFIED = "version: 1\nagents:\n  trades:\n    harness: claude-code\n    cycles: 1\n"
MANIFEST = UNVERIFIED + '    until: ["true"]\n'
STAND_IN = """\
#!{python} -IS
import json, os, signal, sys, time
session = next(one.partition("=")[2] for one in sys.argv if one.startswith(("--sess", "--resume")))
def say(**record):
    print(json.dumps(record), flush=True)
say(type="system", subtype="init", session_id=session, model="m")
def done(text="done", ok=True, **more):
    say(type="result", subtype="success", is_error=not ok, result=text, session_id=session,
        terminal_reason="completed", total_cost_usd=0.5, **more)
"""


class Project:
    """A project, a program named `claude` on the path, and our own program beside it."""

    def __init__(self, place, folder):
        self.place, self.path, self.programs = place, folder / "project", folder / "programs"
        self.path.mkdir()
        self.programs.mkdir()
        (self.path / "rekindle.yaml").write_text(MANIFEST)
        (self.path / "PROMPT.md").write_text("Ship it.\n")

    def claude(self, code):
        program = self.programs / "claude"
        program.write_text(STAND_IN.format(python=sys.executable) + dedent(code))
        program.chmod(stat.S_IRWXU)

    def start(self, *arguments, through=()):
        path = f"{self.programs}:/usr/bin:/bin"
        return self.place.start(
            [*through, sys.executable, "-I", "-m", "rekindle", *arguments],
            env={"PATH": path, "HOME": str(self.path), "LC_ALL": "C.UTF-8"},
            cwd=self.path,
        )

    def __call__(self, *arguments, code=0):
        started = self.start(*arguments)
        assert started.wait() == code, started.out + started.err
        return started

    def exits(self):
        lines = self("events", "--json", "--last", "0").out.splitlines()
        found = [json.loads(line) for line in lines]
        return [one["exit"] for one in found if one["kind"] == "launch.ended"]


@pytest.fixture
def project(place, tmp_path):
    made = Project(place, tmp_path)
    accept_folder(made.path)
    return made


def test_a_cycle_that_is_done_says_so(project):
    """The exit code is 0; the output has the session, its text, and the end of the cycle."""
    project.claude(
        """
        say(type="assistant", message={"model": "m", "content": [
            {"type": "text", "text": "reading"},
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}]})
        done()
        """
    )
    out = project("run").out
    assert "cycle 1, a fresh session" in out
    assert "  reading\n" in out
    assert "  · Bash ls\n" in out
    assert "✓ trades: done and verified after cycle 1: the `until:` command passes" in out


def test_a_run_that_used_its_cycles_is_not_called_done(project):
    """Without a command that verifies the work it has its own exit code and words, also in JSON."""
    (project.path / "rekindle.yaml").write_text(UNVERIFIED)
    project.claude("done()")
    out = project("run", code=24).out
    assert "trades: out of cycles after cycle 1: 1 cycle, and the agent did not report" in out
    assert "then `rekindle run trades`" in out
    assert "done" not in out.splitlines()[-2]
    [row] = json.loads(project("status", "--json").out)["agents"]
    assert (row["state"], row["outcome"]) == ("stopped", "out-of-cycles")
    last = json.loads(project("run", "--json", code=24).out.splitlines()[-1])
    assert (last["kind"], last["why"]) == ("run.ended", "cycles")


RENAMED = """
import sys
from typing import get_args
from rekindle.cli.main import run
from rekindle.documents.events import EVENT_KINDS
from rekindle.flows.supervision.supervisor import RunResult
from rekindle.flows.supervisor_ports import SupervisorReport
for kind in (*EVENT_KINDS, *get_args(SupervisorReport), RunResult):
    kind.__name__ = kind.__qualname__ = "Renamed"
sys.exit(run(["run", "--json"]))
"""


@pytest.mark.parametrize("renamed", [False, True])
def test_for_programs_the_events_of_the_log_are_printed(project, renamed):
    """The lines are those of `events --json`, and nothing else is printed."""
    project.claude("done()")
    if renamed:
        through = [sys.executable, "-I", "-c", RENAMED]
        started = project.place.start(
            through,
            env={"PATH": f"{project.programs}:/usr/bin:/bin", "HOME": str(project.path)},
            cwd=project.path,
        )
        assert started.wait() == 0, started.err
    else:
        started = project("run", "--json")
    printed = [json.loads(line) for line in started.out.splitlines()]
    # A slow launch also records what it has spent so far.
    assert [one["kind"] for one in printed if one["kind"] != "spend.recorded"] == [
        "agent.created",
        "desired.set",
        "run.started",
        "cycle.started",
        "launch.started",
        "launch.ended",
        "relay.committed",
        "cycle.ended",
        "run.ended",
    ]
    assert {(one["v"], one["agent"]) for one in printed} == {(1, "trades")}
    assert started.out == project("events", "--json", "--last", "0").out


def test_a_crash_is_reported_and_the_same_session_resumes(project):
    """Its leftover processes are counted, and the next launch is announced as a resume."""
    project.claude(
        """
        if not os.path.exists("crashed"):
            open("crashed", "w").close()
            if not os.fork():
                os.setsid()
                os.close(1); os.close(2)
                open("left", "w").close()
                time.sleep(600)
            while not os.path.exists("left"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        done()
        """
    )
    out = project("run").out
    assert "! ended by SIGKILL; ended 1 process that the agent had left running" in out
    assert "the same session continues" in out
    assert project.place.processes() == []


def test_a_limit_ends_the_run_with_a_hint(project):
    """It has its own exit code; the cycle stays open."""
    project.claude(
        'done("Claude usage limit reached", ok=False, api_error_status=429); sys.exit(1)'
    )
    ended = project("run", "--once", code=23)
    assert "trades: waiting in cycle 1: a limit was reached" in ended.err
    assert "`rekindle run trades` continues" in ended.err
    assert project.exits() == ["limit"]


def test_ctrl_c_in_safe_mode_says_what_leaves_it(project):
    """The next `run` would be in safe mode again: only a restart leaves it."""
    project.claude('done("Not logged in · Please run /login", ok=False); sys.exit(1)')
    running = project.start("run")
    project.place.wait_for(lambda: "in safe mode" in running.out)
    project.place.signal(running.pid, signal.SIGINT)
    assert running.wait() == 130
    last = running.out.splitlines()[-1]
    assert last.startswith("trades: stopped in cycle 1, in safe mode (")
    assert last.endswith("); `rekindle restart trades && rekindle run trades` continues")
    assert "→ rekindle restart trades && rekindle run trades\n" in project("status").out
    closed = project("answer", "trades-1", "retry", code=7).err
    assert "`rekindle restart trades && rekindle run trades` continues" in closed


def test_a_command_replaces_the_cli_s_own_program(project):
    """`command:` names it, for any harness."""
    project.claude("done('by another name')")
    program = project.programs / "claude"
    other = program.rename(project.path / "other")
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(f"{MANIFEST}    command: [{other}]\n")
    assert "done and verified" in project("run").out


def test_a_pattern_that_cannot_be_enforced_is_refused_by_its_line(project):
    """The error names it before anything starts."""
    manifest = project.path / "rekindle.yaml"
    persona = "personas:\n  default:\n    permissions:\n      allowed_tools: ['Read(src/**)']\n"
    manifest.write_text(MANIFEST.replace("claude-code", "gemini") + persona)
    ended = project("run", code=3)
    assert "rekindle.yaml:9: agent trades: Gemini CLI cannot enforce" in ended.err
    assert "'Read(src/**)'" in ended.err
    assert project.exits() == []


@pytest.mark.parametrize("harness", ["codex", "gemini"])
def test_ask_rules_that_the_cli_would_not_obey_are_refused_by_their_line(project, harness):
    manifest = project.path / "rekindle.yaml"
    persona = "personas:\n  default:\n    permissions:\n      ask: ['Bash(git push*)']\n"
    manifest.write_text(MANIFEST.replace("claude-code", harness) + persona)
    ended = project("run", code=3)
    assert "agent trades: `ask:` is not possible here" in ended.err
    assert "→ write `sandbox: on` in the entry of trades" in ended.err
    assert project.exits() == []


def test_a_missing_program_names_its_installation(project):
    """The exit code is 9, and the message names the command that installs it."""
    ended = project("run", code=9)
    assert "claude could not be started" in ended.err
    assert "npm" in ended.err or "install" in ended.err


def test_without_a_task_nothing_is_started(project):
    """A template without a task and a missing file are both named."""
    project.claude("done()")
    (project.path / "PROMPT.md").unlink()
    assert "PROMPT.md" in project("run", code=3).err
    (project.path / "PROMPT.md").write_text(" \n")
    refused = project("run", code=3).err
    assert "no task yet" in refused
    assert "without progress" not in refused, "the bounds are those of a run that starts"


def test_a_second_run_is_refused_while_the_first_lives(project):
    """The exit code is 6 with a hint, and the first run is not disturbed."""
    project.claude(
        """
        open("up", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.01)
        done()
        """
    )
    first = project.start("run")
    project.place.wait_for((project.path / "up").exists)
    second = project("run", code=6)
    assert "is already running" in second.err
    assert "without progress" not in second.err
    (project.path / "go").touch()
    assert first.wait() == 0, first.err
    assert first.err.count("without progress") == 1


TO_NOBODY = """
import os, subprocess, sys
reader, writer = os.pipe()
child = subprocess.Popen(sys.argv[1:], stdout=writer, stderr=writer)
os.close(writer)
os.read(reader, 1)
os.close(reader)
open("deaf", "w").close()
child.wait()
"""


def test_an_agent_keeps_working_when_its_output_is_closed(project):
    """Quitting a pager must neither stop the work nor leave its launch open."""
    project.claude(
        """
        say(type="assistant", message={"model": "m", "content": [{"type": "text", "text": "hi"}]})
        while not os.path.exists("deaf"):
            time.sleep(0.01)
        for number in range(50):
            say(type="assistant", message={"model": "m", "content": [
                {"type": "text", "text": "still here"}]})
        open("worked", "w").close()
        done()
        """
    )
    started = project.start("run", through=[sys.executable, "-c", TO_NOBODY])
    assert started.wait() == 0, started.err
    assert (project.path / "worked").exists()
    assert project.exits() == ["clean"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_stop_is_kept_even_if_it_cannot_be_printed(project, number):
    """The terminal closes and cannot be written to any more; the stop is not taken for a crash."""
    project.claude(
        """
        say(type="assistant", message={"model": "m", "content": [{"type": "text", "text": "hi"}]})
        while not os.path.exists("deaf"):
            time.sleep(0.01)
        os.kill(os.getppid(), NUMBER)
        while True:
            say(type="assistant", message={"model": "m", "content": [
                {"type": "text", "text": "still here"}]})
            time.sleep(0.01)
        """.replace("NUMBER", str(int(number)))
    )
    started = project.start("run", through=[sys.executable, "-c", TO_NOBODY])
    assert started.wait() == 0, started.err
    assert project.exits() == ["interrupted"]


def test_priming_leaves_out_rules_that_cannot_be_read_and_says_so(project):
    """A rules file that is gone costs the session its rules, not the relay with them."""
    (project.path / "rekindle.yaml").write_text(MANIFEST + "    rules: RULES.md\n")
    (project.path / "relay.md").write_text("## Next Action\nWrite the parser\n")
    project("relay", "set", "relay.md")
    folder = project.path / ".rekindle/agents/trades"
    record = '1 hook claude-code SessionStart:startup - - 1794709671134562890 - {"session_id":"s1"}'
    started = project.place.start(
        [sys.executable, "-I", "-m", "rekindle.wiring.hook_primer", str(folder)],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd=project.path,
        stdin=record,
    )
    assert started.wait() == 0, started.err
    assert "Write the parser" in started.out
    assert "RULES.md" in started.out


PERSONAS = {
    "persona": (
        "    handover: {compaction: {persona: nosuch}}\n",
        "rekindle.yaml:7: agent trades: there is no persona named 'nosuch'",
    ),
    "adapter": (
        "personas:\n  summarizer: {adapter: nosuch}\n",
        "rekindle.yaml:8: the summarizer's adapter 'nosuch' does not exist",
    ),
    "file": (
        "personas:\n  summarizer: {system_prompt_file: nosuch.md}\n",
        "nosuch.md: cannot be read: No such file or directory",
    ),
}


@pytest.mark.parametrize("kind", PERSONAS)
def test_a_missing_summarizer_is_found_at_the_start(project, kind):
    """It is not found only hours later, at the first handoff."""
    more, words = PERSONAS[kind]
    (project.path / "rekindle.yaml").write_text(MANIFEST + more)
    project.claude("done()")
    assert words in project("run", code=3).err
    assert not (project.path / ".rekindle/agents/trades/run/supervised").exists()
    assert project.exits() == []


def test_a_missing_variable_of_notify_refuses_a_person_and_not_a_watchdog(project):
    """The operator is told at once; an agent that a watchdog starts does not wait for it."""
    project.claude("done()")
    (project.path / "rekindle.yaml").write_text(MANIFEST + "notify: [$ALERTS]\n")
    refused = project("run", code=3)
    assert "$ALERTS, which is empty or not set" in refused.err
    accept_folder(project.path)
    kept = project.start("run", "trades", "--for-watchdog")
    assert kept.wait() == 0, kept.err
    assert "$ALERTS, which is empty or not set" in kept.out + kept.err


RELAYS = """
import pathlib
number = len(list(pathlib.Path.cwd().glob("cycle-*")))
pathlib.Path(f"cycle-{{number}}").write_text(sys.stdin.read())
draft = pathlib.Path(".rekindle/drafts/trades/relay.md")
draft.write_text("## Current Phase\\nBuild\\n\\n## Next Action\\n" + {directives}[number] + "\\n")
done()
"""


def prompts(project):
    return [path.read_text() for path in sorted(project.path.glob("cycle-*"))]


def test_an_agent_that_reports_done_ends_the_run_unverified(project):
    """It takes two cycles of ten, has its own exit code, and is never called a stall."""
    (project.path / "rekindle.yaml").write_text(UNVERIFIED.replace("cycles: 1", "cycles: 10"))
    project.claude(RELAYS.format(directives=["Write the lexer", "None. The task is complete."]))
    ended = project("run", code=20)
    assert "cycle 2 is over, the agent wrote the relay; the agent reports that" in ended.out
    assert "✓ trades: done but unverified after cycle 2: no `until:` verifies it" in ended.out
    assert "STALL" not in "".join([ended.out, ended.err, *prompts(project)])
    [row] = json.loads(project("status", "--json").out)["agents"]
    assert (row["state"], row["outcome"]) == ("done", "done-unverified")
    lines = project("events", "--json", "--last", "0").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert [one.get("claimed", False) for one in found if one["kind"] == "cycle.ended"] == [
        False,
        True,
    ]
    assert [one["why"] for one in found if one["kind"] == "run.ended"] == ["claimed"]
    assert "done but unverified" in project("status").out


def test_a_claim_counts_when_until_passes_and_the_agent_is_told_what_failed(project):
    """The command runs only for claims; its output is redacted, and told to the next cycle."""
    key = "sk-ant-" + "api03-" + "Zx9" * 30
    (project.path / "verify.sh").write_text(
        "#!/bin/sh\necho verified >> verified\n"
        f"echo '3 tests failed'; echo {key} >&2\ntest -e cycle-2\n"
    )
    (project.path / "verify.sh").chmod(stat.S_IRWXU)
    (project.path / "rekindle.yaml").write_text(
        UNVERIFIED.replace("cycles: 1", "cycles: 10")
        + '    until: ["./verify.sh"]\n    until_claimed: true\n'
    )
    project.claude(RELAYS.format(directives=["Write the lexer", "DONE", "DONE"]))
    out = project("run").out
    assert "✓ trades: done and verified after cycle 3" in out
    assert out.count("✗ `until:` fails: `./verify.sh` exited with 1: [redacted:") == 1
    assert (project.path / "verified").read_text() == "verified\n" * 2
    first, second, third = prompts(project)
    assert "until:" not in first + second
    assert "You reported that the work is done." in third
    assert "`./verify.sh` exited with 1." in third
    assert "    3 tests failed\n" in third
    assert "[redacted:" in third
    assert key not in third
    assert "STALL" not in third


@pytest.mark.parametrize("identical", [False, True])
def test_an_identical_directive_is_a_stall_if_the_operator_says_so(project, identical):
    """Each cycle writes a new file, which is progress unless only the directive counts."""
    switch = f"runtime: {{stall: {{identical: {str(identical).lower()}}}}}\n"
    text = UNVERIFIED.replace("cycles: 1", "cycles: 3") + switch
    (project.path / "rekindle.yaml").write_text(text)
    project.claude(RELAYS.format(directives=["Write the lexer"] * 3))
    project("run", code=21 if identical else 24)
    told = ["STALL DETECTED" in prompt for prompt in prompts(project)]
    assert told == [False, False, identical]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("accounts: [wrok]", "there is no account named 'wrok'"),
        ("accounts: [work, wrok]", "there is no account named 'wrok'"),
        ("accounts: [spare]", "account spare belongs to codex, which it does not use"),
        ("accounts: [work, own]", "accounts work and own have the same folder"),
        ("harness: [claude-code, codx]", "there is no harness named 'codx'"),
        ("harness: [claude-code, {use: codex, persona: x}]", "there is no persona named 'x'"),
    ],
)
def test_an_error_in_any_route_is_refused(project, keys, words):
    """Otherwise, the agent would work with another login, or could not continue elsewhere."""
    own = keys if "harness" in keys else f"harness: claude-code, {keys}"
    folder = project.path.parent / "login"
    folder.mkdir()
    (folder.parent / "link").symlink_to(folder)
    (project.path / "rekindle.yaml").write_text(
        "version: 1\nagents:\n"
        f"  trades: {{cycles: 1, {own}}}\n"
        "accounts:\n"
        f"  work: {{harness: claude-code, config_dir: {folder}}}\n"
        f"  own: {{harness: claude, config_dir: {folder.parent}/link}}\n"
        f"  spare: {{harness: codex, config_dir: {folder}}}\n"
    )
    project.claude("open('started', 'w').close()\ndone()")
    refused = project("run", code=3)
    assert f"rekindle.yaml:3: agent trades: {words}" in refused.err
    assert not (project.path / "started").exists()
