"""What an agent leaves in the background: ended with it, unless it is kept."""

import json
import signal
import sys

import pytest

from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program
from rekindle.documents import background
from rekindle.documents.background import Record
from rekindle.stores import private

pytestmark = pytest.mark.timeout(120)

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
    """A project whose agent does what the test has written for each of its launches."""

    def plays(self, *scripts: str, **entry: object) -> None:
        for number, script in enumerate(scripts):
            (self.project / f"script-{number}").write_text(STARTS + script)
        agent = {
            "harness": "command",
            "cycles": 1,
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

    def recorded(self) -> Record:
        """What the supervisor has recorded, once that is anything."""
        path = private.of_project(self.project).agent("trades").processes
        self.place.wait_for(lambda: path.exists() and background.parse(path.read_bytes()).processes)
        return background.parse(path.read_bytes())

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
    """Forked twice, in a session of its own: no mark, no parent, no group tells whose it is."""
    rekindle.plays("daemon('one')\n")
    rekindle("run")
    assert not rekindle.lives("one")
    (ended,) = rekindle.events("launch.ended")
    assert (ended["exit"], ended["swept"]) == ("clean", 1)
    assert ended["ended"] == [f"{sys.executable} daemon.py one"]


def test_a_daemon_without_an_environment_ends_with_stop(rekindle):
    """The agent itself is at work."""
    rekindle.plays(f"daemon('one')\n{WAITS}")
    rekindle("up")
    rekindle.waits()
    assert rekindle.lives("one")
    rekindle("stop")
    assert not rekindle.lives("one")
    assert not [words for words in rekindle.place.processes() if "agent.py" in words]


def test_it_ends_although_its_supervisor_was_killed(rekindle):
    """The next supervisor, or `stop`, finds it in the record that the killed one has left."""
    rekindle.plays(f"daemon('one')\n{WAITS}")
    running = rekindle.start("run")
    rekindle.waits()
    (recorded,) = rekindle.recorded().processes
    assert (recorded.pid, recorded.is_kept) == (rekindle.pid("one"), False)
    assert recorded.command == f"{sys.executable} daemon.py one"
    running.signal(signal.SIGKILL)
    running.wait()
    assert rekindle.lives("one")
    rekindle("stop")
    assert not rekindle.lives("one")
