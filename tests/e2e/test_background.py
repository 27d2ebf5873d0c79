"""Background processes of an agent end with it, unless they are kept."""

import json
import signal
import sys

import pytest

from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program
from rekindle.documents.launches import background_record
from rekindle.documents.launches.background_record import RecordedProcess
from rekindle.stores.folders import private_files

pytestmark = pytest.mark.timeout(300)

DAEMON = """\
import os, pathlib, signal, subprocess, sys, time
# As daemons do: two forks and a session of its own; the environment is empty.
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
assert "REKINDLE_LAUNCH" not in os.environ
name, *says = sys.argv[1:]
def told(*_):
    found = subprocess.run([sys.executable, "-I", "-m", "rekindle", *says], capture_output=True)
    pathlib.Path(f"{name}.said").write_text(f"{found.returncode} {found.stderr.decode()}")
if says:
    signal.signal(signal.SIGTERM, told)
pathlib.Path(f"{name}.tmp").write_text(str(os.getpid()))
os.rename(f"{name}.tmp", f"{name}.pid")
deadline = time.monotonic() + 100
while time.monotonic() < deadline:
    if os.path.exists(f"{name}.go"):
        os.unlink(f"{name}.go")
        told()
    time.sleep(0.02)
"""
AGENT = """\
import os, pathlib, subprocess, sys, time
number = len(list(pathlib.Path(".").glob("prompt-*")))
pathlib.Path(f"prompt-{number}").write_text(sys.stdin.read())
script = pathlib.Path(f"script-{number}")
exec(script.read_text() if script.exists() else "print('all done')")
"""
STARTS = """\
def daemon(*words):
    subprocess.run(["env", "-i", sys.executable, "daemon.py", *words],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    while not os.path.exists(f"{words[0]}.pid"):
        time.sleep(0.01)
"""
WAITS = "pathlib.Path('waits').touch(); time.sleep(100)\n"


class Background(Rekindle):
    """A project whose agent runs the test's script for each of its launches."""

    def plays(self, *scripts: str, **entry: object) -> None:
        for number, script in enumerate(scripts):
            (self.project / f"script-{number}").write_text(STARTS + script)
        agent = {
            "harness": "command",
            "cycles": 1,
            "until": ["true"],
            "command": [sys.executable, "agent.py"],
            **entry,
        }
        manifest = {"version": 1, "agents": {"trades": agent}}
        (self.project / "rekindle.yaml").write_text(json.dumps(manifest))

    def pid(self, name: str) -> int:
        return int(self.place.wait_for(lambda: self.text(f"{name}.pid")))

    def lives(self, name: str) -> bool:
        return self.pid(name) in self.place.living()

    def text(self, name: str) -> str | None:
        path = self.project / name
        return path.read_text() or None if path.exists() else None

    def recorded(self, name: str) -> RecordedProcess:
        """Wait for the supervisor's record of a daemon and return it."""
        path, pid = (
            private_files.find_private_project(self.project).agent("trades").processes,
            self.pid(name),
        )

        def found() -> RecordedProcess | None:
            record = background_record.parse(path.read_bytes() if path.exists() else None)
            return next((one for one in record.processes if one.pid == pid), None)

        return self.place.wait_for(found)

    def waits(self) -> None:
        self.place.wait_for((self.project / "waits").exists)


@pytest.fixture
def rekindle(place, tmp_path):
    found = Background(Program(tmp_path / "background"), place)
    (found.project / "agent.py").write_text(AGENT)
    (found.project / "daemon.py").write_text(DAEMON)
    (found.project / "PROMPT.md").write_text(TASK)
    return found


def test_a_daemon_without_an_environment_ends_with_its_launch(rekindle):
    """Forked twice, in its own session, it has no mark, parent or group that shows its owner."""
    rekindle.plays("daemon('one')\n")
    rekindle("run")
    assert not rekindle.lives("one")
    (ended,) = rekindle.events("launch.ended")
    assert (ended["exit"], ended["swept"]) == ("clean", 1)
    assert ended["ended"] == [f"{sys.executable} daemon.py one"]


def test_a_daemon_without_an_environment_ends_with_stop(rekindle):
    """It ends while the agent itself is at work."""
    rekindle.plays(f"daemon('one')\n{WAITS}")
    rekindle("up")
    rekindle.waits()
    assert rekindle.lives("one")
    rekindle("stop")
    assert not rekindle.lives("one")
    assert not [words for words in rekindle.place.processes() if "agent.py" in words]


def test_it_ends_although_its_supervisor_was_killed(rekindle):
    """The next supervisor, or `stop`, finds it in the record of the killed one."""
    rekindle.plays(f"daemon('one')\n{WAITS}")
    running = rekindle.start("run")
    rekindle.waits()
    recorded = rekindle.recorded("one")
    assert not recorded.is_kept
    assert recorded.command == f"{sys.executable} daemon.py one"
    running.signal(signal.SIGKILL)
    running.wait()
    assert rekindle.lives("one")
    rekindle("stop")
    assert not rekindle.lives("one")


def test_a_kept_process_outlives_sessions_and_ends_with_stop(rekindle):
    """`status` names it between launches and cycles; the next session is told of the others."""
    fails = "daemon('server'); daemon('other'); raise SystemExit(1)\n"
    rekindle.plays(fails, "", WAITS, keep=["*daemon.py server"], cycles=3, until=["false"])
    rekindle("up")
    rekindle.waits()
    server = rekindle.pid("server")
    assert (rekindle.lives("server"), rekindle.lives("other")) == (True, False)
    crashed, ended = rekindle.events("launch.ended")
    assert (crashed["exit"], ended["exit"]) == ("crash", "clean")
    assert crashed["ended"] == [f"{sys.executable} daemon.py other"]
    quoted = f"- ended with the session: “{sys.executable} daemon.py other”"
    assert quoted in rekindle.text("prompt-1")
    assert quoted not in rekindle.text("prompt-2")
    (row,) = json.loads(rekindle("status", "--json"))["agents"]
    (kept,) = row["kept"]
    assert (kept["pid"], kept["command"]) == (server, f"{sys.executable} daemon.py server")
    assert f"kept:   {sys.executable} daemon.py server (pid {server}, started" in rekindle("status")
    rekindle("stop")
    assert not rekindle.lives("server")
    (row,) = json.loads(rekindle("status", "--json"))["agents"]
    assert row["kept"] == []


def test_a_kept_process_outlives_a_killed_supervisor_and_ends_with_the_run(rekindle):
    """The next supervisor knows it from the record."""
    rekindle.plays(f"daemon('server')\n{WAITS}", keep=["*daemon.py server"])
    running = rekindle.start("run")
    rekindle.waits()
    rekindle.recorded("server")
    running.signal(signal.SIGKILL)
    running.wait()
    (rekindle.project / "script-1").write_text(WAITS.replace("waits", "again"))
    again = rekindle.start("run")
    rekindle.place.wait_for((rekindle.project / "again").exists)
    assert rekindle.lives("server")
    (row,) = json.loads(rekindle("status", "--json"))["agents"]
    assert [one["pid"] for one in row["kept"]] == [rekindle.pid("server")]
    again.signal(signal.SIGINT)
    again.wait()
    assert not rekindle.lives("server")


# Commands that belong to the operator

REFUSED = [
    "run",
    "up",
    "down",
    "stop",
    "restart",
    "handoff",
    "answer trades yes",
    "approve trades",
    "deny trades",
    "service install --print",
    "service install --all --print",
    "forget . --yes",
    "uninstall --yes",
]
CALLED = """\
for number, words in enumerate(calls):
    called = subprocess.run([sys.executable, "-I", "-m", "rekindle", *words.split()],
                            capture_output=True, text=True, cwd=where)
    pathlib.Path(f"called-{number}").write_text(f"{called.returncode} {called.stderr}")
"""


def test_an_agent_cannot_run_its_operator_s_commands(rekindle):
    """Commands that change which agents run are refused; reading and working commands are not."""
    rekindle.plays(f"where, calls = '.', {[*REFUSED, 'status', 'loops']}\n{CALLED}")
    rekindle("run")
    *refused, status, loops = [
        rekindle.text(f"called-{number}") for number in range(len(REFUSED) + 2)
    ]
    for words, said in zip(REFUSED, refused, strict=True):
        assert said.startswith("14 "), (words, said)
        assert f"`rekindle {words.partition(' ')[0]}" in said
        assert "may_control: true" in said
    assert (status, loops) == ("0 ", "0 ")
    assert [one["desired"] for one in rekindle.events("desired.set")] == ["running"]


def test_its_daemon_cannot_undo_stop(rekindle):
    """Without an environment and in a session of its own, it answers SIGTERM with `restart`."""
    rekindle.plays(f"daemon('one', 'restart')\n{WAITS}")
    rekindle("up")
    rekindle.waits()
    (rekindle.project / "one.go").touch()  # the first time while the agent is at work
    rekindle.place.wait_for(lambda: rekindle.text("one.said"))
    assert rekindle.text("one.said").startswith("14 "), rekindle.text("one.said")
    rekindle("stop")
    assert not rekindle.lives("one")
    assert rekindle("watch", "--once").startswith("· trades: stopped")
    said = [one["desired"] for one in rekindle.events("desired.set")]
    assert said == ["running", "stopped"]


def test_it_cannot_undo_stop_after_its_supervisor_was_killed(rekindle):
    """By then its parent is the first process: the record shows its owner."""
    rekindle.plays(f"daemon('one', 'restart')\n{WAITS}")
    running = rekindle.start("run")
    rekindle.waits()
    rekindle.recorded("one")
    running.signal(signal.SIGKILL)
    running.wait()
    (rekindle.project / "one.go").touch()
    rekindle.place.wait_for(lambda: rekindle.text("one.said"))
    assert rekindle.text("one.said").startswith("14 "), rekindle.text("one.said")


def test_an_agent_may_use_another_project(rekindle):
    """The refusal covers only the agent's own project."""
    other = rekindle.project.parent / "other"
    other.mkdir()
    (other / "PROMPT.md").write_text(TASK)
    rekindle.plays(f"where, calls = {str(other)!r}, ['run --trust', 'stop', 'restart']\n{CALLED}")
    inner = {"harness": "command", "cycles": 1, "until": ["true"], "command": ["true"]}
    (other / "rekindle.yaml").write_text(json.dumps({"version": 1, "agents": {"a": inner}}))
    rekindle("run")
    assert [rekindle.text(f"called-{number}")[:2] for number in range(3)] == ["0 "] * 3


def test_an_agent_may_if_its_manifest_said_so_at_its_start(rekindle):
    """An edit of the manifest by the agent itself comes too late."""
    allowed = {"harness": "command", "may_control": True, "command": ["true"]}
    manifest = json.dumps({"version": 1, "agents": {"trades": allowed}})
    writes = "path = pathlib.Path('rekindle.yaml')\nbefore = path.read_text()\n"
    writes += f"path.write_text({manifest!r})\n"
    rekindle.plays(f"{writes}where, calls = '.', ['restart']\n{CALLED}path.write_text(before)\n")
    rekindle("run")
    assert rekindle.text("called-0").startswith("14 ")
    rekindle.plays("", f"where, calls = '.', ['restart']\n{CALLED}{WAITS}", may_control=True)
    assert rekindle.events("restart.requested") == []
    rekindle("run")
    assert len(rekindle.events("restart.requested")) == 1
    assert rekindle.events("launch.ended")[-2]["words"].startswith(
        "ended because the operator restarted it"
    )
