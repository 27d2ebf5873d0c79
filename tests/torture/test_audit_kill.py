"""kill -9 around every call of git that a relay's commit makes, and of git itself.

Between two calls of git the command changes nothing on disk, so a kill before and after each of
them covers every point of the trail's part. The log has the relay by then: whatever happened to the
trail, the next command brings it up to date, each relay once.
"""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rekindle import config
from rekindle.documents.events import RelayCommitted
from rekindle.wiring.open_store import open_store
from throwaway import Repository, isolate

pytestmark = pytest.mark.torture

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
GITS_KILLED = 150 if WHOLE else 12
SEED = 20260409
FIRST, LATER = 7, 5
"""Calls of git for the first relay of a trail, and for each later one."""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    isolate(monkeypatch, tmp_path / "home")
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    made = tmp_path / "project"
    Repository(made).init().commit()
    (made / "rekindle.yaml").write_text(
        "version: 1\nagents:\n  trades:\n    harness: claude-code\n"
    )
    return made


def set_relay(project: Path, what: str, path: str | None = None) -> int:
    """The real command, as a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "rekindle", "relay", "set", "-"],
        cwd=project,
        env={**os.environ, "PATH": path or os.environ["PATH"]},
        input=f"## Next Action\nDo the {what}\n".encode(),
        capture_output=True,
        check=False,
    )
    return ended.returncode


def wrapped(folder: Path, script: str) -> str:
    """A PATH on which git is a script that knows the real one, and counts its own calls."""
    folder.mkdir(exist_ok=True)
    (folder / "calls").write_text("0")
    program = folder / "git"
    program.write_text(
        f"#!/bin/sh\nreal={shutil.which('git')}\n"
        f"read n < {folder}/calls; n=$((n + 1)); echo $n > {folder}/calls\n{script}\n"
    )
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def relays(project: Path) -> list[int]:
    found = open_store(config.load_project(project)).events_since("trades", 0).events
    return [one.seq for one in found if isinstance(one, RelayCommitted)]


def trail(project: Path) -> list[int]:
    return [seq for seq, _ in Repository(project).trail()]


def test_the_number_of_calls_is_known(project, tmp_path):
    """The sweep below covers each of them: there are no others."""
    path = wrapped(tmp_path / "fake", 'exec "$real" "$@"')
    for calls in (FIRST, LATER, LATER):
        (tmp_path / "fake/calls").write_text("0")
        assert set_relay(project, "work", path) == 0
        assert int((tmp_path / "fake/calls").read_text()) == calls
    assert trail(project) == relays(project)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", range(1, FIRST + LATER + 1))
def test_a_command_killed_around_a_call_of_git_is_caught_up(project, tmp_path, call, moment):
    """The relay is in the log; the next one brings the trail up to date, each once."""
    number, done = (call, 0) if call <= FIRST else (call - FIRST, 1)
    for _ in range(done):
        assert set_relay(project, "first thing") == 0
    kill = f"[ $n = {number} ] && kill -9 $PPID"
    script = f'{kill} && exit 1\nexec "$real" "$@"'
    if moment == "after":
        script = f'"$real" "$@"; code=$?\n{kill}\nexit $code'
    assert set_relay(project, "killed thing", wrapped(tmp_path / "fake", script)) == -9
    assert len(relays(project)) == done + 1
    assert trail(project) in (relays(project), relays(project)[:-1])
    assert set_relay(project, "next thing") == 0
    assert trail(project) == relays(project)
    Repository(project).git("fsck", "--strict", "--no-dangling")


def test_a_crowd_of_commands_writes_one_trail(project):
    """Twelve run at once: no relay is missing or duplicated, and no command reports a problem."""
    crowd = [
        subprocess.Popen(
            [sys.executable, "-m", "rekindle", "relay", "set", "-"],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _ in range(12)
    ]
    for number, one in enumerate(crowd):
        one.stdin.write(f"## Next Action\nDo thing {number}\n".encode())
        one.stdin.close()
        one.stdin = None
    assert [one.communicate()[1] for one in crowd] == [b""] * 12
    assert set_relay(project, "last thing") == 0
    assert len(relays(project)) == 13
    assert trail(project) == relays(project)


def test_a_git_killed_anywhere_leaves_a_sound_repository(project, tmp_path):
    """Killed at any time while it writes: what remains is caught up, or named with its cure."""
    chosen = random.Random(SEED)
    for number in range(GITS_KILLED):
        call = chosen.choice((LATER - 1, LATER))  # unpack-objects, update-ref
        if not trail(project):
            call += FIRST - LATER
        pause = chosen.uniform(0, 0.006)
        script = (
            f'[ $n = {call} ] || exec "$real" "$@"\n'
            f'exec {sys.executable} -S {tmp_path}/shoot.py {pause} "$real" "$@"'
        )
        (tmp_path / "shoot.py").write_text(
            "import os, signal, sys, time\n"
            "pid = os.fork()\n"
            "if pid == 0:\n    os.execv(sys.argv[2], sys.argv[2:])\n"
            "time.sleep(float(sys.argv[1]))\n"
            "os.kill(pid, signal.SIGKILL)\n"
            "ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
            f"open({str(tmp_path / 'shot')!r}, 'a').write('x' if ended < 0 else '')\n"
            "sys.exit(ended if ended >= 0 else 137)\n"
        )
        assert set_relay(project, f"thing {number}", wrapped(tmp_path / "fake", script)) == 0
        Repository(project).git("fsck", "--strict", "--no-dangling")
        for lock in (project / ".git/refs/heads/rekindle").rglob("*.lock"):
            lock.unlink()  # as the notice says
        assert trail(project) == relays(project)[: len(trail(project))]
    killed = len((tmp_path / "shot").read_text())
    assert set_relay(project, "last thing") == 0
    assert trail(project) == relays(project)
    assert killed > 0
    print(f"\n{killed} of {GITS_KILLED} gits killed while they ran, 0 relays missing or twice")
