"""A program that is started to go on without us: no ties, no traces but its words."""

import signal
import sys

import pytest

PRELUDE = """
import json, os, stat, sys, time
from pathlib import Path
from rekindle.errors import RekindleError
from rekindle.system.processes.child_processes import HostProcesses

OUTPUT = Path("words")

def begin(code, output=OUTPUT, folder="."):
    return HostProcesses().start_detached(
        [sys.executable, "-I", "-S", "-c", "import os, signal, sys\\n" + code],
        environment={"PATH": os.environ["PATH"], "MINE": "1"}, folder=folder, output=output,
    )

def wait_until(found, seconds=120):
    deadline = time.monotonic() + seconds
    while not (result := found()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return result

def words(end="done\\n"):
    wait_until(lambda: OUTPUT.read_text().endswith(end))
    return OUTPUT.read_text()

def tell(**facts):
    print(json.dumps(facts))
"""


@pytest.fixture
def kernel():
    """Nothing here looks at processes: one way is as good as the other."""
    return "linux_processes"


def test_it_has_no_ties_to_us(inside):
    """Another session, no input, only the environment it was given, no descriptor of ours."""
    found = inside(
        PRELUDE
        + """
held = open("held", "w")
os.set_inheritable(held.fileno(), True)
pid = begin('''
own = os.getpid() == os.getsid(0) == os.getpgid(0)
while os.getppid() != 1: pass  # until the process in between has exited
files = [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)]
more = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
print(os.getpid(), own, os.getppid(), os.environ.get("UNSAID"), os.environ["MINE"], files[0],
      files[1] == files[2] == os.path.abspath("words"), len(more), flush=True)
print("complaint", file=sys.stderr, flush=True)
print("done", flush=True)
''')
said = words().splitlines()
tell(pid=pid == int(said[0].split()[0]), said=said[0].split()[1:], rest=said[1:],
     mode=oct(stat.S_IMODE(OUTPUT.stat().st_mode)))
""",
        UNSAID="s",
    )
    # One more descriptor: the folder that is being listed.
    assert found["said"] == ["True", "1", "None", "1", "/dev/null", "True", "1"]
    assert found["rest"] == ["complaint", "done"]
    assert found["pid"] is True
    assert found["mode"] == "0o600"


def test_it_leaves_no_entry_behind(inside):
    """Twenty that end at once: none waits for us, and we have no children."""
    found = inside(
        PRELUDE
        + """
pids = [begin("os._exit(0)") for _ in range(20)]
gone = wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
try:
    os.waitpid(-1, os.WNOHANG)
    children = True
except ChildProcessError:
    children = False
tell(gone=gone, children=children, different=len(set(pids)))
"""
    )
    assert found == {"gone": True, "children": False, "different": 20}


def test_it_outlives_us(place, tmp_path):
    """The process that started it is killed; it keeps running."""
    code = PRELUDE + "\nbegin(\"open('up', 'w').close()\\nwhile True: signal.pause()\")\n"
    code += "wait_until(lambda: False, 600)\n"
    starter = place.start([sys.executable, "-c", code], env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    place.wait_for((tmp_path / "up").exists)
    starter.signal(signal.SIGKILL)
    assert starter.wait() == -signal.SIGKILL
    assert len(place.processes()) == 1


def test_its_words_are_added_and_cut_when_they_are_many(inside):
    """Up to a megabyte all of them stay; beyond, the last quarter, from the beginning of a line."""
    found = inside(
        PRELUDE
        + """
def fill(size):
    line = b"x" * 99 + b"\\n"
    OUTPUT.write_bytes((line * (size // 100 + 1))[-size:])
    OUTPUT.chmod(0o644)
sizes = []
for size in (1024 * 1024, 1024 * 1024 + 1):
    fill(size)
    begin('print("done", flush=True)')
    text = words("\\ndone\\n")
    sizes.append([len(text), len(text.splitlines()[0]), oct(OUTPUT.stat().st_mode)[-3:]])
tell(sizes=sizes)
"""
    )
    whole, cut = found["sizes"]
    assert whole == [1024 * 1024 + 5, 75, "600"]
    assert cut == [256 * 1024 // 100 * 100 + 5, 99, "600"]


def test_an_obstacle_is_named(inside):
    """It may be a missing program, a missing folder, or a link in the place of its output file."""
    found = inside(
        PRELUDE
        + """
def error(**how):
    known = {"environment": {}, "folder": ".", "output": OUTPUT}
    argv = how.pop("argv", ["true"])
    try:
        HostProcesses().start_detached(argv, **known | how)
    except RekindleError as error:
        return [type(error).__name__, str(error)]
os.symlink("elsewhere", "link")
os.mkfifo("pipe")
tell(program=error(argv=["no-such-program"]), folder=error(folder="nowhere"),
     nul=error(argv=["true", "a\\0b"]), link=error(output=Path("link")),
     pipe=error(output=Path("pipe")))
"""
    )
    assert found["program"][0] == "ProgramMissingError"
    assert "no-such-program could not be started: No such file" in found["program"][1]
    assert found["folder"] == ["AgentError", "the agent's folder nowhere does not exist"]
    assert "true could not be started: embedded null byte" in found["nul"][1]
    assert found["link"][0] == found["pipe"][0] == "UnsafePathError"
