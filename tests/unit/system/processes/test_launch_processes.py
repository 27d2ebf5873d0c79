"""Leftover processes of a launch are found by its mark and ended; all others are left alone."""

import pytest

PRELUDE = '''
import json, os, signal, subprocess, sys, time
from rekindle.hook import record_event
from rekindle.errors import AgentError
from rekindle.system.processes import launch_processes
from rekindle.system.processes.child_processes import HostProcesses

BEGIN = launch_processes.read_uptime()
READER, WRITER = os.pipe()
HERE = f"echo $$ >&{WRITER}; exec sleep 600"

def spawn(*argv, mark="m1", name="REKINDLE_LAUNCH", **how):
    """Start it and wait until it has said its number, which may be a grandchild's."""
    environment = {"PATH": os.environ["PATH"], "HERE": HERE} | ({name: mark} if mark else {})
    child = subprocess.Popen(argv, env=environment, pass_fds=[WRITER], **how)
    return said(), child

def said():
    line = b""
    while not line.endswith(b"\\n"):
        line += os.read(READER, 1)
    return int(line)

def lives(pid):
    try:
        stat = open(f"/proc/{pid}/stat").read()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"

def sweep(mark="m1", **at):
    known = {"boot": launch_processes.identify_boot(), "uptime": BEGIN, "patience": 0.1}
    return HostProcesses().end_launch_processes(mark, **known | at).processes

def tell(**facts):
    print(json.dumps(facts))
'''


def test_everything_with_the_mark_is_ended(inside):
    """Plain, in a session of its own, with nohup, forked twice and adopted by another parent."""
    found = inside(
        PRELUDE
        + """
ways = [
    ["sh", "-c", HERE],
    ["setsid", "sh", "-c", HERE],
    ["nohup", "sh", "-c", HERE],
    ["sh", "-c", 'setsid nohup sh -c "$HERE" </dev/null >/dev/null 2>&1 &'],
    ["sh", "-c", '(setsid sh -c "(setsid sh -c \\\\"\\\\$HERE\\\\" &) &" &) &'],
]
pids = [spawn(*way, stderr=subprocess.DEVNULL)[0] for way in ways]
before = [lives(pid) for pid in pids]
ended = sweep()
tell(before=before, after=[lives(pid) for pid in pids], ended=ended, again=sweep())
"""
    )
    assert found.pop("ended") >= 5  # a shell in between may still be there
    assert found == {"before": [True] * 5, "after": [False] * 5, "again": 0}


def test_what_does_not_bear_the_mark_survives(inside):
    """No mark, another, one that only begins alike, the mark under another name, another user's."""
    found = inside(
        PRELUDE
        + """
others = {
    "none": spawn("sh", "-c", HERE, mark=""),
    "another": spawn("sh", "-c", HERE, mark="m2"),
    "longer": spawn("sh", "-c", HERE, mark="m11"),
    "shorter": spawn("sh", "-c", HERE, mark="m"),
    "other name": spawn("sh", "-c", HERE, name="OTHER_REKINDLE_LAUNCH"),
    "in its arguments": spawn("sh", "-c", HERE, "REKINDLE_LAUNCH=m1", mark=""),
}
if os.geteuid() == 0:
    others["another user"] = spawn("sh", "-c", HERE, user=65534, group=65534, extra_groups=[])
ended = sweep()
tell(ended=ended, dead=[name for name, (pid, _) in others.items() if not lives(pid)])
"""
    )
    assert found == {"ended": 0, "dead": []}


def test_what_is_older_than_the_launch_survives(inside):
    """A mark cannot be used to end what was there before it."""
    found = inside(
        PRELUDE
        + """
pid, _ = spawn("sh", "-c", HERE)
later = sweep(uptime=launch_processes.read_uptime() + 5)
tell(later=later, lives=lives(pid), now=sweep(), still=lives(pid))
"""
    )
    assert found == {"later": 0, "lives": True, "now": 1, "still": False}


def test_nothing_of_another_boot_is_looked_for(inside):
    """The host was rebooted since: a process with the mark now was not left behind."""
    found = inside(
        PRELUDE
        + """
pid, _ = spawn("sh", "-c", HERE)
tell(other=sweep(boot="00000000"), none=sweep(boot=""), lives=lives(pid))
"""
    )
    assert found == {"other": 0, "none": 0, "lives": True}


def test_the_searching_process_is_not_ended(inside):
    """A supervisor that was itself started with the mark keeps running."""
    found = inside(PRELUDE + "\ntell(ended=sweep())\n", REKINDLE_LAUNCH="m1")
    assert found == {"ended": 0}


def test_a_process_that_ignores_sigterm_is_killed(inside):
    """A stopped process is killed too."""
    found = inside(
        PRELUDE
        + """
deaf, _ = spawn("sh", "-c", 'trap "" TERM; ' + HERE)
stopped, _ = spawn("sh", "-c", HERE)
os.kill(stopped, signal.SIGSTOP)
polite, _ = spawn("sh", "-c", f'trap "echo 1 >&{WRITER}; exit" TERM; echo $$ >&{WRITER};'
                  ' while :; do sleep 600 & wait; done')
start = time.monotonic()
ended = sweep()
tell(ended=ended, taken=time.monotonic() - start, goodbye=said(),
     lives=[lives(deaf), lives(stopped), lives(polite)])
"""
    )
    assert found["lives"] == [False] * 3
    assert found["ended"] >= 3
    assert found["goodbye"] == 1  # a process that handles SIGTERM is asked first
    assert found["taken"] >= 0.1


FORKS = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # none is missed, also by a fork
os.write({writer}, b"%d\\n" % os.getpid())
for _ in range({times}):
    signal.sigwait([signal.SIGTERM])
    if os.fork():
        os._exit(0)
    os.setsid()
signal.sigwait([signal.SIGTERM])
"""


@pytest.mark.parametrize("times", [1, 10, 1_000_000])
def test_one_that_forks_while_it_is_being_ended_is_caught(inside, times):
    """Its answer to SIGTERM is another of its kind, once or every time; none is left alive."""
    code = FORKS.replace("{times}", str(times))
    found = inside(
        PRELUDE
        + f"""
code = {code!r}.replace("{{writer}}", str(WRITER))
first, _ = spawn(sys.executable, "-I", "-S", "-c", code)
ended = sweep()
alive = [pid for pid in os.listdir("/proc") if pid.isdecimal() and lives(pid)
         and b"REKINDLE_LAUNCH=m1" in open(f"/proc/{{pid}}/environ", "rb").read()]
tell(ended=ended, alive=alive, first=lives(first))
"""
    )
    assert found == {"ended": found["ended"], "alive": [], "first": False}
    assert found["ended"] >= 2


def test_a_zombie_is_not_a_survivor(inside):
    """It has no mark any more and cannot be killed; waiting for it would never end."""
    found = inside(
        PRELUDE
        + """
pid, child = spawn("sh", "-c", f"echo $$ >&{WRITER}; exit 3")
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
tell(state=state, ended=sweep(), code=child.wait())
"""
    )
    assert found == {"state": "Z", "ended": 0, "code": 3}


def test_a_process_is_told_from_another_with_its_number(inside, kernel):
    """Gone, a zombie, a reused process id, another boot: none of them is alive.

    For a process in another namespace the answer is unknown.
    """
    found = inside(
        PRELUDE
        + """
pid, child = spawn("sh", "-c", HERE)
os.environ["CLAUDE_PID"] = str(pid)
name, named_by_hook = launch_processes.identify(pid), record_event.identify("claude-code")
number, started, boot, room = name.split(".")
facts = {
    "by its name": launch_processes.is_alive(name),
    "by its number": launch_processes.is_alive(number),
    "number given again": launch_processes.is_alive(f"{number}.{int(started) + 1}.{boot}.{room}"),
    "another boot": launch_processes.is_alive(f"{number}.{started}.00000000.{room}"),
    "no boot": launch_processes.is_alive(f"{number}.{started}"),
    "another namespace": launch_processes.is_alive(f"{number}.{int(started) + 1}.{boot}.1"),
}
child.kill()
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
facts["a mere entry"] = launch_processes.is_alive(name)
child.wait()
facts["gone"] = launch_processes.is_alive(name)
facts["its number gone"] = launch_processes.is_alive(number)
facts["named again"] = launch_processes.identify(pid)
tell(hook=named_by_hook == name, **facts)
"""
    )
    assert found.pop("hook") is (
        kernel == "linux_processes"
    )  # elsewhere a hook knows the number alone
    alive = {name for name, answer in found.items() if answer}
    assert alive == {"by its name", "by its number", "another namespace"}


@pytest.mark.parametrize(
    "name", ["", "-1", "0", "abc", "1e3", "9" * 20, "9" * 64, "0.1.b", f"{'9' * 20}.5.b", "..", "²"]
)
def test_a_name_that_no_process_has_is_not_alive(inside, name):
    """Whatever a hook was told to report: no answer but no."""
    found = inside(PRELUDE + f"\ntell(alive=launch_processes.is_alive({name!r}))\n")
    assert found == {"alive": False}


def test_a_number_that_was_given_to_another_is_not_signalled(inside):
    """Between the search and the signal it exited, and its process id was reused."""
    found = inside(
        PRELUDE
        + """
pid, child = spawn("sh", "-c", HERE)
found = {pid: process_api.here.hold(pid, process_api.here.table()[pid].born)}
child.kill()
child.wait()
time.sleep(0.05)
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(pid - 1))
other, _ = spawn("sh", "-c", HERE, mark="")
process_api.here.end(found, 0.1)
tell(found=list(found) == [pid], same=other == pid, lives=lives(other))
"""
    )
    assert found == {"found": True, "same": True, "lives": True}
