"""Leftovers of dead supervisors, in every mixture: run inside a place, by its test.

Each situation is an agent as a dead supervisor left it, with traces that could pass for a living
one: process ids that belong to other processes by now, marks of another boot, locks with any
content. Bystander processes run throughout; every signal to one of them is reported.
"""

import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rekindle.documents import events
from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    FinalReport,
    SessionOpened,
    SweptProcesses,
)
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.system.processes import launch_processes
from rekindle.system.processes.child_processes import HostProcesses
from unit.flows.cycles.test_cycle_runner import (
    FakeProcesses,
    Scene,
)

LONG_AFTER = 3600.0
signalled: collections.Counter[int] = collections.Counter()


def listen() -> None:
    """Record every process that is signalled, in any way."""
    numbers: dict[int, int] = {}
    opened, sent, killed, killed_group = (
        os.pidfd_open,
        signal.pidfd_send_signal,
        os.kill,
        os.killpg,
    )

    def pidfd_open(pid: int, flags: int = 0) -> int:
        fd = opened(pid, flags)
        numbers[fd] = pid
        return fd

    def send(fd: int, number: int, *more: Any) -> None:
        signalled[numbers[fd]] += 1
        sent(fd, number, *more)

    def kill(pid: int, number: int) -> None:
        if number:  # zero only asks
            signalled[pid] += 1
        killed(pid, number)

    def killpg(group: int, number: int) -> None:
        signalled[group] += 1
        killed_group(group, number)

    os.pidfd_open, os.kill, os.killpg = pidfd_open, kill, killpg
    signal.pidfd_send_signal = send


def spawn(mark: str = "") -> subprocess.Popen[bytes]:
    environment = {"PATH": "/usr/bin:/bin"} | ({LAUNCH_VARIABLE: mark} if mark else {})
    started = subprocess.Popen(["sleep", "600"], env=environment)
    # Only once it has become the program does it bear the mark.
    while b"sleep" not in Path(f"/proc/{started.pid}/cmdline").read_bytes():
        pass
    return started


class HalfReal(FakeProcesses):
    """Starts what the test plays, but looks for what was left as the real one does."""

    def __init__(self, store: FileStore) -> None:
        super().__init__(store)
        self._real = HostProcesses()

    def boot(self) -> str:
        return self._real.boot()

    def uptime(self) -> float:
        return self._real.uptime()

    def end_launch_processes(self, mark: str, **how: Any) -> SweptProcesses:
        return self._real.end_launch_processes(mark, **how)


class Clock:
    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **amount: float) -> None:
        self.time += timedelta(**amount)


class Sweep:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.marks = [f"{number:016x}" for number in range(8)]
        self.bystanders = [spawn(mark) for mark in self.marks] + [spawn() for _ in range(4)]
        self.pids = [one.pid for one in self.bystanders]
        self.late = launch_processes.read_uptime() + LONG_AFTER
        dead = spawn()
        dead.kill()
        dead.wait()
        self.dead = dead.pid
        self.counts: collections.Counter[str] = collections.Counter()
        self.refused: list[str] = []
        self.believed: list[str] = []

    def content(self) -> bytes:
        """Return the content of a lock's file, which is never read: only flock decides."""
        rng = self.rng
        return rng.choice(
            (
                b"",
                b"%d\n" % rng.choice(self.pids),
                b"%d\n" % self.dead,
                json.dumps(
                    {"pid": rng.choice(self.pids), "boot": launch_processes.identify_boot()}
                ).encode(),
                rng.randbytes(40),
            )
        )

    def leftover(self) -> tuple[str, events.LaunchStarted, subprocess.Popen[bytes] | None]:
        """Write a launch without an end, and start its real process if the situation has one."""
        rng, now, here = self.rng, datetime.now(UTC), launch_processes.identify_boot()
        kind = rng.choice(("dead", "other boot", "no boot", "reused", "reused boot", "empty"))
        mark, boot, uptime, own = (
            f"{rng.getrandbits(64):016x}",
            here,
            launch_processes.read_uptime(),
            None,
        )
        if rng.random() < 0.02:
            kind, own = "really left", spawn(mark)
        elif kind in {"other boot", "no boot"}:
            # A process with the mark has it by chance: the host was rebooted since.
            mark, boot, uptime = rng.choice(self.marks), "0ther000", 0.0
            boot = boot if kind == "other boot" else ""
        elif kind == "reused":
            # Older than the launch: the mark in it is not the launch's.
            mark, uptime = rng.choice(self.marks), self.late
        elif kind == "reused boot":
            mark, boot, uptime = rng.choice(self.marks), "0ther000", self.late
        elif kind == "empty":
            mark, boot = "", ""
        uptime = uptime - 1 if own else uptime
        return (
            kind,
            events.LaunchStarted(
                ts=now, launch=mark, cycle=1, session="s", harness="fake", boot=boot, uptime=uptime
            ),
            own,
        )

    def stale_process(self) -> str:
        """A process as a hook would have named it, which is not there any more."""
        pid, here = self.rng.choice([*self.pids, self.dead]), launch_processes.identify_boot()
        born = (
            launch_processes.identify(pid)
            or f"{pid}.1.{here}.{launch_processes.identify(os.getpid())}"
        )
        number, start, _, *room = born.split(".")
        return self.rng.choice(
            (
                f"{number}.{int(start) + 1}.{here}.{room[-1]}",
                f"{number}.{start}.0ther000.{room[-1]}",
                f"{self.dead}",
                "",
                "stranger",
            )
        )

    def play(self, number: int) -> None:
        project = self.folder / str(number)
        project.mkdir()
        clock = Clock()
        store = FileStore(project, host="here", settings=Settings(), clock=clock)
        kind, launch, own = self.leftover()
        process = self.stale_process()
        with store.writer("trades") as writer:
            said = policy.make_desired_event(writer.projection.run, "running", clock())
            life = events.SessionStarted(
                ts=clock(),
                session="s",
                harness="fake",
                source="startup",
                process=process,
                launch=launch.launch,
            )
            began = events.CycleStarted(ts=clock(), cycle=1)
            writer.append(said, events.RunStarted(ts=clock()), began, launch, life)
        folder = store.folder("trades")
        for path in (folder.supervisor, folder.lock):
            path.write_bytes(self.content())
        if launch_processes.is_alive(process):
            self.believed.append(f"{number}: {process}")
        scene = Scene(store, clock, project)
        scene.processes = HalfReal(store)
        finished = scene.shows(lambda: (FinalReport("s", ok=True),))
        opened = scene.shows(lambda: (SessionOpened(scene.harness.starts[-1].session),))
        scene.plays(("clean", opened, finished))
        try:
            outcome = scene.run(once=False, by_watchdog=True).why
        except Exception as error:  # noqa: BLE001 - any of them is a start that was refused
            outcome = f"{type(error).__name__}: {error}"
        if outcome != "cycles" or scene.exits() != ["lost", "clean"]:
            self.refused.append(f"{number} ({kind}): {outcome} {scene.exits()}")
        if own is not None:
            assert own.wait(10) == -signal.SIGTERM, "what was really left must be ended"
            signalled.pop(own.pid)
        self.counts[kind] += 1
        shutil.rmtree(project)


def main() -> None:
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    listen()
    sweep = Sweep(folder, seed)
    signalled.clear()  # signals to the process that should be dead
    for number in range(count):
        sweep.play(number)
    alive = [one.poll() is None for one in sweep.bystanders]
    print(
        json.dumps(
            {
                "counts": sweep.counts,
                "wrong": dict(signalled),
                "alive": all(alive),
                "refused": sweep.refused,
                "believed": sweep.believed,
            }
        )
    )


if __name__ == "__main__":
    main()
