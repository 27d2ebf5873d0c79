"""Programs that hang in every way, and one that only takes long; all are real processes."""

import json
import signal
import sys
from datetime import UTC, datetime

import pytest

from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from unit.cli.running.test_run_command import (
    MANIFEST,
    Project,
)

pytestmark = pytest.mark.timeout(300)

SILENCE, EVERY = 2.0, 0.5
WATCH = (
    f"runtime:\n  watch: {{silence: {SILENCE:.0f}s, every: 0.5s}}\n  restart: {{cooldown: 0s}}\n"
)
ONCE = """
if not os.path.exists("hung"):
    with open("hung.tmp", "w") as file:
        file.write(f"{os.getpid()} {time.time()}")
    os.rename("hung.tmp", "hung")
"""
"""The code after this runs in the first process alone, which records when it began to hang."""


class Hanging(Project):
    def __init__(self, place, folder):
        super().__init__(place, folder)
        (self.path / "rekindle.yaml").write_text(MANIFEST + WATCH)

    def hangs(self, code):
        """Make the first process do this, and the next one finish."""
        lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
        self.claude(ONCE + lines + "done()\n")

    @property
    def began(self):
        """Return the process that hangs, and since when."""
        pid, seconds = (self.path / "hung").read_text().split()
        return int(pid), datetime.fromtimestamp(float(seconds), UTC)

    def log(self, kind):
        path = self.path / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]

    def after(self, event):
        """Return the seconds since it began to hang."""
        return (datetime.fromisoformat(event["ts"]) - self.began[1]).total_seconds()

    def ended_for_it(self):
        """Return the seconds until the hang was noticed, and until the process was gone."""
        (noticed,) = self.log("hang.detected")
        assert noticed["ended"] is True
        first, last = self.log("launch.ended")
        assert (first["exit"], last["exit"]) == ("hang", "clean")
        return self.after(noticed), self.after(first)


@pytest.fixture
def project(place, tmp_path):
    return Hanging(place, tmp_path)


def test_a_stopped_process_is_noticed_and_continues(project):
    """A person sent SIGSTOP on purpose: it is reported, and the process is not killed."""
    project.hangs("os.kill(os.getpid(), signal.SIGSTOP)")
    running = project.start("run")
    project.place.wait_for(lambda: bool(project.log("hang.detected")), 20)
    (noticed,) = project.log("hang.detected")
    assert "was suspended" in noticed["words"]
    assert not noticed.get("ended")
    assert project.after(noticed) >= SILENCE
    pid, _ = project.began
    assert pid in project.place.living()
    project.place.signal(pid, signal.SIGCONT)
    assert running.wait() == 0, running.err
    assert project.exits() == ["clean"]
    assert len(project.log("hang.detected")) == 1


@pytest.mark.bench
def test_one_that_waits_for_nothing_is_ended(project):
    """Without processor time, children or output, the same session resumes in another process."""
    project.hangs("import select\nselect.epoll().poll()")
    project("run")
    noticed, gone = project.ended_for_it()
    print(f"\nat epoll: noticed after {noticed:.1f} s, gone after {gone:.1f} s")
    assert SILENCE <= noticed <= gone <= SILENCE + 3 * EVERY
    assert len({one["session"] for one in project.log("launch.started")}) == 1


def test_one_that_spins_and_does_not_listen_is_killed(project):
    """Processor time alone is not a sign of life of a CLI that reports its actions."""
    project.hangs("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    pass")
    project("run")
    noticed, gone = project.ended_for_it()
    print(f"\nspinning, deaf: noticed after {noticed:.1f} s, gone after {gone:.1f} s")
    assert noticed >= SILENCE
    assert gone - noticed >= STOP_SECONDS
    assert project.log("launch.ended")[0]["code"] == -signal.SIGKILL


def test_a_tool_call_that_takes_long_is_noticed_and_finishes(project):
    """However long it takes: no output is expected before it returns."""
    project.hangs(
        """
say(type="assistant", message={"model": "m", "content": [
    {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "make"}}]})
log = os.path.join(os.environ["REKINDLE_FOLDER"], "ops.jsonl")
while "hang.detected" not in open(log).read():
    time.sleep(0.05)
say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "1"}]})
"""
    )
    project("run")
    (noticed,) = project.log("hang.detected")
    assert "tool call" in noticed["words"]
    assert not noticed.get("ended")
    assert project.exits() == ["clean"]


COMMAND = (
    "version: 1\nagents:\n  trades:\n    harness: command\n    cycles: 1\n    until: ['true']\n"
)
UNTIL_NOTICED = """\
log = os.path.join(os.environ["REKINDLE_FOLDER"], "ops.jsonl")
while "hang.detected" not in open(log).read():
"""


def wraps(project, code):
    """Make the agent a shell that waits for a program, which does this the first time."""
    program = project.programs / "agent"
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    program.write_text(f"#!{sys.executable} -IS\nimport os, select, signal, time\n{ONCE}{lines}")
    program.chmod(0o700)
    # The shell has a command left, so that it cannot become the program by `exec`.
    manifest = COMMAND + '    command: ["sh", "-c", "agent; code=$?; echo done; exit $code"]\n'
    (project.path / "rekindle.yaml").write_text(manifest + WATCH)


def test_a_shell_that_waits_for_a_hung_program_is_ended(project):
    """An idle child is not a sign of life, or no wrapper would ever be found hung."""
    wraps(project, "select.epoll().poll()")
    project("run")
    noticed, gone = project.ended_for_it()
    print(f"\nidle in a shell: noticed after {noticed:.1f} s, gone after {gone:.1f} s")
    # Its start counts as work until the next but one check.
    assert SILENCE <= noticed <= gone


@pytest.mark.parametrize(
    "work",
    ["    pass", "    open('log', 'a').write('x' * 10_000)\n    time.sleep(0.05)"],
    ids=["computes", "writes"],
)
def test_a_shell_whose_program_works_in_silence_is_left_alone(project, work):
    """It uses the processor or a file: the operator is told once, and the program finishes."""
    wraps(project, UNTIL_NOTICED + work)
    project("run")
    (noticed,) = project.log("hang.detected")
    assert "is working" in noticed["words"]
    assert not noticed.get("ended")
    assert project.exits() == ["clean"]


IDLE_CALL = 4.0
CALLS = """
say(type="assistant", message={"model": "m", "content": [
    {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "make"}}]})
"""


def bounded(project):
    more = f"  watch: {{silence: {SILENCE:.0f}s, every: 0.5s, idle_call: {IDLE_CALL:.0f}s}}\n"
    text = f"{MANIFEST}runtime:\n{more}  restart: {{cooldown: 0s}}\n"
    (project.path / "rekindle.yaml").write_text(text)


def test_a_call_that_never_returns_does_not_switch_the_detection_off(project):
    """The call's own program has ended, and the CLI never reports it: it is ended at the bound."""
    bounded(project)
    project.hangs(CALLS + "import select\nselect.epoll().poll()")
    project("run")
    first, second = project.log("hang.detected")
    assert "tool call" in first["words"]
    assert [bool(one.get("ended")) for one in (first, second)] == [False, True]
    assert project.after(second) >= IDLE_CALL
    ended, last = project.log("launch.ended")
    print(f"\nnever returns: gone after {project.after(ended):.1f} s")
    assert (ended["exit"], last["exit"]) == ("hang", "clean")


def test_a_call_whose_program_works_may_take_longer_than_the_bound(project):
    """A test run of two hours has a busy child."""
    bounded(project)
    work = f"import time\nend = time.time() + {IDLE_CALL + 2}\nwhile time.time() < end: pass"
    project.hangs(
        CALLS
        + f"import subprocess\nsubprocess.run([sys.executable, '-c', {work!r}])\n"
        + 'say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "1"}]})'
    )
    project("run")
    (noticed,) = project.log("hang.detected")
    assert not noticed.get("ended")
    assert project.exits() == ["clean"]


IMPATIENT = """\
import sys
from rekindle.policy.supervision import hang
hang.FINISHED_SECONDS = 1.0
from rekindle.cli.main import main
sys.exit(main())
"""


def test_a_process_that_reported_its_result_and_does_not_exit_is_reaped(project):
    """Its work is finished; the missing exit is neither a hang nor a crash."""
    project.hangs("done()\nimport select\nselect.epoll().poll()")
    argv = [sys.executable, "-c", IMPATIENT, "run"]
    path = f"{project.programs}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(project.path), "LC_ALL": "C.UTF-8"}
    running = project.place.start(argv, env=env, cwd=project.path)
    assert running.wait() == 0, running.err
    assert project.exits() == ["clean"]
    (ended,) = project.log("launch.ended")
    print(f"\nfinished, and stayed: gone after {project.after(ended):.1f} s")
    assert project.after(ended) >= 1
    assert ended["code"] == -signal.SIGTERM
    assert project.log("hang.detected") == []
