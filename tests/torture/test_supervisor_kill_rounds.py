"""kill -9 of agent, supervisor or both, at any moment, again and again: one comes back each time.

A replacement for Claude Code starts a tool with its own session, and reports through our own hook
program, which is killed with it or not. At its start it looks for another copy of itself, or a tool
of an earlier one, which would hold a lock. In the end the log is compared with its notes.

CI plays a few rounds; `just torture` plays 1,000.
"""

import collections
import json
import os
import random
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from loopback.place import Place
from rekindle.system.files import hook_program
from throwaway import Repository

pytestmark = [pytest.mark.torture, pytest.mark.timeout(7200)]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
ROUNDS: Final = 1_000 if WHOLE else 15
SEED: Final = int(os.environ.get("REKINDLE_SEED", "20261115"))
DEAF: Final = ("00", "01", "02", "03") if WHOLE else ()
"""Prefix of launches whose tools ignore SIGTERM: each of them costs the ten seconds of a stop."""
VICTIMS: Final = ("agent", "supervisor", "both", "unborn")
"""`unborn`: a supervisor that has not started its agent yet."""
MANIFEST: Final = """\
version: 1
agents:
  trades:
    harness: claude-code
    cycles: 1
    until: ["true"]
runtime:
  relay: {summarizer: mechanical}
  restart: {cooldown: 0s, max_crashes: 100000}
  watch: {every: 0.2s}
"""
STAND_IN: Final = """\
#!%(python)s -IS
import fcntl, os, subprocess, sys, time
launch, folder = os.environ["REKINDLE_LAUNCH"], os.environ["REKINDLE_FOLDER"]
session = next(one.partition("=")[2] for one in sys.argv if one.startswith(("--sess", "--resume")))

# Each launch makes progress that git can see: a night of kills is not a run without progress.
for name in os.listdir("."):
    if name.startswith("work-"):
        os.unlink(name)
letters = launch.translate(str.maketrans("0123456789", "ghijklmnop"))
os.close(os.open("work-" + letters, os.O_WRONLY | os.O_CREAT))

def keep(words):
    fd = os.open("kept", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    os.write(fd, (words + "\\n").encode())
    os.close(fd)

def hold(name, how):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        keep(f"fault {name} {launch}")
    return fd

def report(event, call):
    hook = [sys.executable, "-I", "-S", %(hook)r, "claude-code", event, folder]
    payload = '{"session_id": "%%s", "tool_name": "Bash", "tool_use_id": "%%s"}' %% (session, call)
    subprocess.run(hook, input=payload.encode(), check=True)
    keep(f"told {event} {call}")

alone = hold("alone", fcntl.LOCK_EX)
os.set_inheritable(alone, False)
os.close(hold("tools", fcntl.LOCK_EX))
held = hold("tools", fcntl.LOCK_SH)
os.set_inheritable(held, True)
said = '{"type":"system","subtype":"init","session_id":"%%s","model":"m"}' %% session
print(said, flush=True)
for _ in range(2):
    deaf = "trap '' TERM; " if launch.startswith(%(deaf)r) else ""
    subprocess.Popen(["setsid", "sh", "-c", deaf + "while :; do sleep 60; done"], close_fds=False,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(held)
report("SessionStart:startup", "-")
keep(f"up {launch} {os.getpid()} {os.getppid()}")
number = 0
while True:
    number += 1
    report("PostToolUse", f"{launch}-{number}")
    print('{"type":"assistant","message":{"model":"m","content":[]}}', flush=True)
    time.sleep(0.02)
"""


class Rounds:
    """An agent, its watchdogs, and the notes of the replacement."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.path = place, folder / "project"
        self.path.mkdir()
        self._killed: set[int] = set()
        programs = folder / "programs"
        programs.mkdir()
        self._environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(self.path),
            "LC_ALL": "C.UTF-8",
        }
        Repository(self.path).init()
        (self.path / "rekindle.yaml").write_text(MANIFEST)
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        program = programs / "claude"
        hook = str(hook_program.find_hook_path())
        program.write_text(STAND_IN % {"python": sys.executable, "deaf": DEAF, "hook": hook})
        program.chmod(stat.S_IRWXU)

    def start(self, *arguments: str) -> Any:
        argv = [sys.executable, "-I", "-m", "rekindle", *arguments]
        return self.place.start(argv, env=self._environment, cwd=self.path)

    def __call__(self, *arguments: str) -> None:
        started = self.start(*arguments)
        assert started.wait() == 0, started.out + started.err

    def kept(self, what: str) -> list[list[str]]:
        path = self.path / "kept"
        lines = path.read_text().splitlines() if path.exists() else []
        return [words[1:] for line in lines if (words := line.split())[0] == what]

    def supervisors(self) -> list[int]:
        found = self.place.living().items()
        return [pid for pid, argv in found if {"rekindle", "run"} <= set(argv)]

    def until_up(self) -> tuple[int, int]:
        """Return the process ids of an agent and its supervisor, once new ones are running."""

        def found() -> tuple[int, int] | None:
            for _, *numbers in reversed(self.kept("up")[-2:]):
                agent, supervisor = map(int, numbers)
                both = {agent, supervisor}
                if not both & self._killed and both <= set(self.place.living()):
                    return agent, supervisor
            return None

        both: tuple[int, int] = self.place.wait_for(found, 30)
        return both

    def kill(self, pid: int) -> None:
        """Kill it, unless it was quicker: an agent ends when its supervisor has."""
        self._killed.add(pid)
        try:
            self.place.signal(pid, signal.SIGKILL)
        except AssertionError as error:
            assert "No such process" in str(error)  # noqa: PT017 - whatever else, it is a failure

    def log(self) -> list[dict[str, Any]]:
        path = self.path / ".rekindle/agents/trades/ops.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def rounds(place: Place, in_memory: Path) -> Rounds:
    return Rounds(place, in_memory)


def strike(rounds: Rounds, rng: random.Random, victim: str) -> None:
    """Kill, at some moment; afterwards its supervisor is gone, or is about to start it again."""
    agent, supervisor = rounds.until_up()
    time.sleep(rng.uniform(0, 0.15))  # no waiting for anything: the moment is what is tried
    first, second = (agent, supervisor) if rng.random() < 0.5 else (supervisor, agent)
    for pid in (
        (first, second) if victim == "both" else (agent,) if victim == "agent" else (supervisor,)
    ):
        rounds.kill(pid)
    if victim != "agent":
        rounds.place.wait_for(lambda: supervisor not in rounds.place.living())


def kill_unborn(rounds: Rounds, rng: random.Random) -> None:
    """Kill the supervisor that is being started, before or while it starts its agent."""
    # A daemon that looks so often starts several before one has the lock: the others end.
    pid, *_ = rounds.place.wait_for(lambda: rounds.supervisors() or None, 30)
    time.sleep(rng.uniform(0, 0.6))
    rounds.kill(pid)
    rounds.place.wait_for(lambda: pid not in rounds.place.living())


def looked_after(rounds: Rounds, at_once: int) -> None:
    """Have watchdogs look, all at the same moment; of what they start, one stays."""
    watching = [rounds.start("watch", "--once") for _ in range(at_once)]
    assert {one.wait() for one in watching} == {0}
    if at_once > 1:
        agent, supervisor = rounds.until_up()
        rounds.place.wait_for(lambda: rounds.supervisors() == [supervisor], 30)
        assert rounds.until_up() == (agent, supervisor)


def test_one_comes_back_each_time(rounds: Rounds):
    """0 survivors after the next start, 0 double starts, 0 lost events."""
    rng = random.Random(SEED)
    rounds("up")
    daemon = None
    done: collections.Counter[str] = collections.Counter()
    for number in range(ROUNDS):
        victim = rng.choice(VICTIMS)
        strike(rounds, rng, "supervisor" if victim == "unborn" else victim)
        if victim == "unborn":
            if daemon is None:
                rounds("watch", "--once")
            kill_unborn(rounds, rng)
        if number % 10 == 0:
            # A daemon watches for a while; after that only single checks do.
            if daemon is None:
                daemon = rounds.start("daemon")
            else:
                daemon.signal(signal.SIGTERM)
                daemon.wait()
                daemon = None
        if daemon is None and victim != "agent":
            looked_after(rounds, at_once=rng.choice((1, 1, 2, 3)))
        done[victim] += 1
        assert rounds.kept("fault") == [], f"round {number}, {victim}, seed {SEED}"
    rounds.until_up()
    rounds("stop")
    rounds.place.wait_for(lambda: not rounds.supervisors(), 30)
    hold(rounds, dict(done))


def hold(rounds: Rounds, done: dict[str, int]) -> None:
    """Hold the log against what was kept outside it."""
    log = rounds.log()
    assert [one["seq"] for one in log] == list(range(1, len(log) + 1))
    open_launch = ""
    for one in log:
        if one["kind"] == "launch.started":
            assert not open_launch, f"{one['launch']} was started beside {open_launch}"
            open_launch = one["launch"]
        elif one["kind"] == "launch.ended":
            assert one["launch"] == open_launch
            open_launch = ""
    assert not open_launch
    launches = [one["launch"] for one in log if one["kind"] == "launch.started"]
    assert len(launches) == len(set(launches)) >= sum(done.values())
    told = {call for event, call in rounds.kept("told") if event == "PostToolUse"}
    beats = collections.Counter(one["call"] for one in log if one["kind"] == "heartbeat")
    assert told - set(beats) == set()
    assert set(beats.values()) == {1}
    left = rounds.place.processes()
    assert not [argv for argv in left if "rekindle" not in argv], left
    exits = collections.Counter(one["exit"] for one in log if one["kind"] == "launch.ended")
    assert exits["crash"] + exits["lost"] >= sum(done.values())
    swept = sum(one.get("swept", 0) for one in log if one["kind"] == "launch.ended")
    print(
        f"\n{sum(done.values())} rounds {done}, seed {SEED}:"
        f" {len(launches)} launches {dict(exits)}, {swept} left behind and ended;"
        f" {len(told)} events told, {len(log)} in the log, 0 lost"
    )
