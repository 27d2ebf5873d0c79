"""Leftover processes of a launch are found without its mark; others stay."""

import pytest

PRELUDE = '''
import json, os, signal, subprocess, sys, time
from pathlib import Path
from rekindle.system.processes import launch_processes
from rekindle.system.processes.child_processes import HostProcesses

BEGIN = launch_processes.read_uptime()
AT = {"boot": launch_processes.identify_boot(), "uptime": BEGIN}

def until(found):
    deadline = time.monotonic() + 120
    while not (result := found()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)
    return result

def said(name):
    path = Path(name)
    return int(until(lambda: path.exists() and path.read_text().strip()))

def lives(pid):
    return pid in process_api.here.table()

def forked(name, then="exec sleep 600"):
    """Words for a shell: a process in its own session, without an environment, and orphaned."""
    return f"env -i setsid sh -c 'echo $$ >{name}; {then}' >/dev/null 2>&1 &"

def run(processes, script, mark="m1"):
    """A launch that runs a shell to its end."""
    environment = {"PATH": os.environ["PATH"], "REKINDLE_LAUNCH": mark}
    child = processes.start(["sh", "-c", script], prompt="", environment=environment, folder=".")
    for _ in child.follow(0.05):
        pass

def tell(**facts):
    print(json.dumps(facts))
'''


def only_linux(kernel):
    if kernel != "linux_processes":
        pytest.skip("only Linux gives orphans to the supervisor")


def test_an_orphan_without_a_mark_is_ended_and_named(inside, kernel):
    """It is the supervisor's child by then; another that was there before the launch stays."""
    only_linux(kernel)
    found = inside(
        PRELUDE
        + """
processes = HostProcesses(adopts=True)
process_api.here.adopt_orphans()
subprocess.run(["sh", "-c", forked("before")], check=True)
before = said("before")
run(processes, forked("mine") + " until test -s mine; do sleep 0.01; done")
mine = said("mine")
parents = [process_api.here.table()[pid].parent == os.getpid() for pid in (before, mine)]
swept = processes.end_launch_processes("m1", **AT, patience=0.1)
tell(parents=parents, lives=[lives(before), lives(mine)], swept=[swept.processes, swept.commands])
"""
    )
    assert found == {
        "parents": [True, True],
        "lives": [True, False],
        "swept": [1, ["sleep 600"]],
    }


def test_a_program_that_the_supervisor_asks_meanwhile_is_not_the_agent_s(inside, kernel):
    """It is neither ended with the launch, nor is its exit code taken from its waiter."""
    only_linux(kernel)
    found = inside(
        PRELUDE
        + """
processes = HostProcesses(adopts=True)
environment = {"PATH": os.environ["PATH"], "REKINDLE_LAUNCH": "m1"}
agent = processes.start(["sleep", "0.3"], prompt="", environment=environment, folder=".")
asked = HostProcesses().start(
    ["sh", "-c", "until test -s go; do sleep 0.01; done; exit 7"],
    prompt="", environment={"PATH": os.environ["PATH"]}, folder=".",
)
for _ in agent.follow(0.05):
    pass
swept = processes.end_launch_processes("m1", **AT, patience=0.1)
alive = lives(asked.pid)
open("go", "w").write("x")
for _ in asked.follow(0.05):
    pass
tell(swept=swept.processes, alive=alive, code=asked.code)
"""
    )
    assert found == {"swept": 0, "alive": True, "code": 7}


def test_orphans_that_have_ended_are_reaped_while_the_agent_runs(inside, kernel):
    """A night of short background commands must not fill the table of processes."""
    only_linux(kernel)
    found = inside(
        PRELUDE
        + """
processes = HostProcesses(adopts=True)
run(processes, "for i in 1 2 3; do " + forked("one", "true") + " sleep 0.2; done; sleep 0.3")
states = [Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
          for name in os.listdir("/proc") if name.isdecimal()]
tell(zombies=[one for one in states if one == ["Z", str(os.getpid())]])
"""
    )
    assert found == {"zombies": []}


def test_what_is_kept_outlives_the_launch_with_all_below_it(inside):
    """In the agent's own group, too; the rest of the group is ended."""
    found = inside(
        PRELUDE
        + """
processes = HostProcesses(adopts=True, keep=["*server.sh*"])
Path("server.sh").write_text("sleep 600 & echo $! >worker; echo $$ >server; wait")
run(processes, "sh server.sh >/dev/null 2>&1 & sh -c 'echo $$ >other; exec sleep 600' & "
    "until test -s server && test -s other; do sleep 0.01; done")
pids = [said(name) for name in ("server", "worker", "other")]
swept = processes.end_launch_processes("m1", **AT, patience=0.1)
after = [lives(pid) for pid in pids]
told = processes.background("m1", **AT, program="")
ended = processes.end([one.process for one in told if one.is_kept], patience=0.1)
tell(after=after, kept=[one.command for one in told if one.is_kept], ended=ended.processes,
     left=[lives(pid) for pid in pids])
"""
    )
    assert found == {
        "after": [True, True, False],
        "kept": ["sh server.sh"],
        "ended": 2,
        "left": [False, False, False],
    }


def test_the_agent_itself_is_never_kept(inside):
    """Its arguments hold the prompt, which may name what is kept."""
    found = inside(
        PRELUDE
        + """
agent = subprocess.Popen(["sh", "-c", "sleep 600; : keep server.sh"],
                         env={"PATH": os.environ["PATH"], "REKINDLE_LAUNCH": "m1"})
until(lambda: "server.sh" in process_api.here.command(agent.pid))
processes = HostProcesses(keep=["*server.sh*"])
spared = processes.end_launch_processes("m1", **AT, patience=0.1)
alive = lives(agent.pid)
processes.end_launch_processes("m1", **AT, patience=0.1, program=processes.identify(agent.pid))
tell(spared=spared.processes, alive=alive, after=lives(agent.pid))
"""
    )
    assert found == {"spared": 0, "alive": True, "after": False}


def test_a_recorded_process_is_ended_by_its_identity_alone(inside):
    """The supervisor never was its parent; a reused pid does not count."""
    found = inside(
        PRELUDE
        + """
subprocess.run(["sh", "-c", forked("one") + forked("two")], check=True)
one, two = said("one"), said("two")
other = launch_processes.identify(two).replace(f"{two}.", f"{two}.1", 1)
names = [launch_processes.identify(one), other]
swept = HostProcesses().end_launch_processes("m1", **AT, patience=0.1, recorded=names)
tell(lives=[lives(one), lives(two)], swept=swept.processes)
"""
    )
    assert found == {"lives": [False, True], "swept": 1}


def test_the_processes_above_are_known_by_environment_and_open_files(inside):
    """A child of a child that has cleared its environment finds what its grandparent holds."""
    found = inside(
        PRELUDE
        + """
lock = open("held", "w")
again = f'''
import json, os
from rekindle.system.processes import process_api, launch_processes
from rekindle.system.processes import {process_api.here.__name__.rpartition(".")[2]} as here
process_api.here = here
above = launch_processes.list_ancestors()
print(json.dumps([
    above[0] == os.getpid() and {os.getpid()} in above,
    any(process_api.here.environment(pid).get("SECOND") == "yes" for pid in above),
    any({str(Path("held").absolute())!r} in process_api.here.open_files(pid) for pid in above),
    "SECOND" in os.environ,
]))
'''
shell = ["sh", "-c", 'env -i "$@"; true', "sh", sys.executable, "-c", again]
said = subprocess.run(shell, env={"SECOND": "yes", "PATH": os.environ["PATH"]},
                      capture_output=True, text=True, check=True)
print(said.stdout)
"""
    )
    assert found == [True, True, True, False]


def test_an_orphan_of_a_session_in_a_terminal_is_ended(inside, kernel):
    """The same for a program that has the person's terminal, behind a leader of its own."""
    only_linux(kernel)
    found = inside(
        PRELUDE
        + """
import pty
pid, terminal = pty.fork()
if not pid:
    from rekindle.system.terminal.pty_process import TerminalProcesses
    processes = TerminalProcesses(adopts=True)
    run(processes, forked("mine") + " until test -s mine; do sleep 0.01; done")
    mine = said("mine")
    before = lives(mine)
    swept = processes.end_launch_processes("m1", **AT, patience=0.1)
    Path("told").write_text(json.dumps([before, lives(mine), swept.processes, swept.commands]))
    os._exit(0)
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass  # the other side is closed
os.waitpid(pid, 0)
print(Path("told").read_text())
"""
    )
    assert found == [True, False, 1, ["sleep 600"]]
