"""The vital signs of a launch, from the system: stopped, at work, idle, or busy in its tools."""

PRELUDE = """
import json, os, signal, sys, time
from rekindle.system.processes.child_processes import HostProcesses

PROCESSES = HostProcesses()
BEGIN = {"boot": PROCESSES.boot(), "uptime": PROCESSES.uptime()}
BURN = "while True: pass"
IDLE = "select.epoll().poll()"
START = "import os, select, subprocess, sys\\nprint(flush=True)\\n"

def begin(code):
    python = [sys.executable, "-I", "-S", "-c", START + code]
    child = PROCESSES.start(
        python, prompt="", environment={"PATH": os.environ["PATH"], "REKINDLE_LAUNCH": "m1"},
        folder=".",
    )
    follow = child.follow(0.05)
    next(line for line in follow if line is not None)
    return child, follow

def look(child, **at):
    return PROCESSES.vitals(child.pid, "m1", **BEGIN | at)

def wait_until(found, seconds=120):
    deadline = time.monotonic() + seconds
    while not (result := found()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(result)

def tell(**facts):
    print(json.dumps(facts))
"""


def test_a_stopped_process_is_reported(inside):
    """It reacts to nothing, yet `kill -0` says that it exists."""
    found = inside(
        PRELUDE
        + """
child, _ = begin(IDLE)
before = look(child).stopped
os.kill(child.pid, signal.SIGSTOP)
stopped = wait_until(lambda: look(child).stopped)
os.kill(child.pid, signal.SIGCONT)
tell(before=before, stopped=stopped, again=wait_until(lambda: not look(child).stopped))
"""
    )
    assert found == {"before": False, "stopped": True, "again": True}


def test_a_working_process_is_told_from_a_waiting_one(inside):
    """Its own computation counts; one that waits in epoll uses nothing."""
    found = inside(
        PRELUDE
        + """
busy, busily = begin(BURN)
idle, idly = begin(IDLE)
wait_until(lambda: look(busy).cpu_seconds > 0.5)
before = look(idle)
time.sleep(0.5)
after = look(idle)
tell(busy=look(busy).cpu_seconds, waits=after.cpu_seconds - before.cpu_seconds,
     stopped=look(busy).stopped)
"""
    )
    assert found["busy"] > 0.5
    assert found["waits"] == 0
    assert found["stopped"] is False


def test_a_tool_at_work_is_told_from_the_agent_that_waits_for_it(inside):
    """It has a session of its own; what it used counts on when it has ended."""
    found = inside(
        PRELUDE
        + """
tool = [sys.executable, "-I", "-S", "-c", BURN]
child, _ = begin(f"subprocess.run({tool!r}, start_new_session=True)\\n{IDLE}")
working = wait_until(lambda: look(child).tools_cpu_seconds > 0.5)
busy = look(child)
(pid,) = [int(one) for one in os.listdir("/proc") if one.isdecimal()
          and BURN.encode() in open(f"/proc/{one}/cmdline", "rb").read().split(b"\\0")]
os.kill(pid, signal.SIGKILL)
wait_until(lambda: look(child).tools == 0)
done = look(child)
# Once it was waited for: in between, it is not counted.
kept = wait_until(lambda: look(child).tools_cpu_seconds >= busy.tools_cpu_seconds)
tell(working=working, tools=busy.tools, own=busy.cpu_seconds < busy.tools_cpu_seconds,
     left=done.tools, kept=kept)
"""
    )
    assert found == {"working": True, "tools": 1, "own": True, "left": 0, "kept": True}


def test_a_descendant_without_the_mark_counts_too(inside):
    """`env -i` takes the mark away, not the parent."""
    found = inside(
        PRELUDE
        + """
tool = ["env", "-i", sys.executable, "-I", "-S", "-c", BURN]
child, _ = begin(f"subprocess.Popen({tool!r})\\n{IDLE}")
working = wait_until(lambda: look(child).tools_cpu_seconds > 0.5)
tell(working=working, tools=look(child).tools)
"""
    )
    assert found == {"working": True, "tools": 1}


def test_data_that_is_read_and_written_is_counted(inside):
    """The launch's own process and its tools are counted apart; a waiting one moves nothing."""
    found = inside(
        PRELUDE
        + """
write = "import os; os.write(os.open(os.devnull, os.O_WRONLY), bytes(50_000_000))\\n"
tool = [sys.executable, "-I", "-S", "-c", write + "import select\\n" + IDLE]
own, owned = begin(write + IDLE)
alone = wait_until(lambda: look(own).moved_bytes > 50_000_000)
own.kill()
list(owned)
both, followed = begin(f"subprocess.Popen({tool!r})\\n{IDLE}")
apart = wait_until(lambda: look(both).tools_moved_bytes > 50_000_000)
before = look(both)
time.sleep(0.3)
after = look(both)
tell(alone=alone, apart=apart, small=after.moved_bytes < 50_000_000,
     waits=after.tools_moved_bytes - before.tools_moved_bytes)
"""
    )
    assert found == {"alone": True, "apart": True, "small": True, "waits": 0}


def test_a_process_that_is_gone_has_none(inside):
    """It exited, reaped or not, or was started before the host was rebooted."""
    found = inside(
        PRELUDE
        + """
child, follow = begin(IDLE)
other_boot = look(child, boot="00000000")
os.kill(child.pid, signal.SIGKILL)
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
entry = look(child)
list(follow)
tell(other_boot=other_boot, entry=entry, gone=look(child))
"""
    )
    assert found == {"other_boot": None, "entry": None, "gone": None}
