"""A project's folder is damaged under a live supervisor, again and again: never two agents.

Each round an agent runs, its folder is wiped, checked out, stashed, put back as it was earlier,
renamed, or linked; parts of it are removed; the manifest and the record of the owner are edited,
removed, or replaced by a folder, a link or a FIFO; and at the same moment `up`, `watch --once` and
`run` are called. Each of the agent's processes holds a lock in a ledger outside the project: one
that finds it taken says so. At the end of a round `stop` must end everything in time, and no log
that there ever was may end a cycle twice.

CI plays a few rounds; `just torture` plays 1,000.
"""

import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from guarded import AGENT, Guarded
from loopback.place import Place, Started

pytestmark = [pytest.mark.torture, pytest.mark.timeout(14_400)]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
ROUNDS: Final = int(os.environ.get("REKINDLE_DAMAGE_ROUNDS", "1000" if WHOLE else "5"))
SEED: Final = int(os.environ.get("REKINDLE_SEED", "20261116"))
ONLY: Final = os.environ.get("REKINDLE_DAMAGE", "")
"""Part of the names of the damages to play; empty: all of them."""
STOP_SECONDS: Final = 15.0
LAUNCH_SECONDS: Final = 0.8
ABSENCE_SECONDS: Final = 0.5
COMMANDS: Final = (("up",), ("watch", "--once"), ("run",), ("up",))
CRASHED: Final = {1, 70}
"""Exit codes of a bug; every other error is one that a command may report of a damaged folder."""


class Damage:
    """Ways to damage a project's folder; each says whether it did what it was to do."""

    def __init__(self, project: Guarded, aside: Path, rng: random.Random) -> None:
        self._project, self._aside, self._rng = project, aside, rng
        self.absences: list[float] = []
        """Seconds for which the project was not at its path, of each rename and link."""
        self._folder = project.path / ".rekindle"
        self._manifest = project.path / "rekindle.yaml"
        self._owner = self._folder / "agents" / AGENT / "owner.json"
        self._old = aside / "old"
        self._away = project.path.with_name("away")

    def keep_copy(self) -> None:
        shutil.rmtree(self._old, ignore_errors=True)
        self._project.copy_state(self._old)

    def clean(self) -> None:
        self._project.git("clean", "-fdxq")

    def checkout(self) -> None:
        self._project.git("checkout", "-q", "HEAD", "--", ".")
        self._project.git("clean", "-fdxq", ".rekindle")

    def stash(self) -> None:
        """Stash everything that is not committed, also what is ignored, and drop it."""
        self._project.git("stash", "push", "-qa")
        with contextlib.suppress(subprocess.CalledProcessError):  # written to in between: wiped
            self._project.git("stash", "pop", "-q")

    def restore(self) -> None:
        """Put an older copy of .rekindle in the place of what there is."""
        if self._folder.exists():
            self._folder.rename(self._aside / f"newer-{time.monotonic_ns()}")
        shutil.copytree(self._old, self._folder, dirs_exist_ok=True)

    def restore_log(self) -> None:
        """Write an older copy of the log over what there is, as `cp` does."""
        shutil.copyfile(self._old / "agents" / AGENT / "ops.jsonl", self._project.log)

    def rename(self) -> None:
        """Rename the project's folder, and back a moment later."""
        self._project.path.rename(self._away)
        self._stay_away()
        self._away.rename(self._project.path)

    def link(self) -> None:
        """Put a link to the project in its own place, and the project back a moment later."""
        self._project.path.rename(self._away)
        self._project.path.symlink_to(self._away)
        self._stay_away()
        self._project.path.unlink()
        self._away.rename(self._project.path)

    def _stay_away(self) -> None:
        """Sleep for a random time: the length of the absence is part of the damage."""
        self.absences.append(self._rng.uniform(0, ABSENCE_SECONDS))
        time.sleep(self.absences[-1])

    def link_state(self) -> None:
        """Put a link in the place of .rekindle."""
        moved = self._aside / f"linked-{time.monotonic_ns()}"
        self._folder.rename(moved)
        self._folder.symlink_to(moved)

    def remove_run(self) -> None:
        shutil.rmtree(self._folder / "agents" / AGENT / "run")

    def remove_locks(self) -> None:
        for name in ("lock", "supervisor"):
            (self._folder / "agents" / AGENT / "run" / name).unlink(missing_ok=True)

    def remove_log(self) -> None:
        self._project.log.unlink()

    def edit_manifest(self) -> None:
        """Add a command to it, as an agent can."""
        text = self._manifest.read_text()
        self._manifest.write_text(text.replace('"cycles": 0', '"cycles": 0, "until": ["true"]'))

    def break_manifest(self) -> None:
        """Leave half of it, as a writer does that does not rename."""
        self._manifest.write_bytes(self._manifest.read_bytes()[:40])

    def disown(self) -> None:
        """Have the folder belong to another host."""
        owner = json.loads(self._owner.read_text())
        self._owner.write_text(json.dumps(owner | {"host": "another"}))

    def _replacements(self, path: Path) -> dict[str, Callable[[], None]]:
        """Remove a file, or put another object in its place."""

        def replace_by(make: Callable[[Path], None]) -> Callable[[], None]:
            def act() -> None:
                path.rename(self._aside / f"replaced-{time.monotonic_ns()}")
                make(path)

            return act

        kept = self._aside / f"kept-{path.name}"
        return {
            f"remove {path.name}": path.unlink,
            f"folder for {path.name}": replace_by(lambda at: at.mkdir()),
            f"FIFO for {path.name}": replace_by(os.mkfifo),
            f"link for {path.name}": replace_by(lambda at: at.symlink_to(kept)),
            f"link to the old {path.name}": lambda: (
                shutil.copyfile(path, kept),
                replace_by(lambda at: at.symlink_to(kept))(),
            )[-1],
        }

    def ways(self) -> dict[str, Callable[[], None]]:
        return {
            "clean": self.clean,
            "checkout": self.checkout,
            "stash": self.stash,
            "restore": self.restore,
            "restore_log": self.restore_log,
            "rename": self.rename,
            "link": self.link,
            "link_state": self.link_state,
            "remove_run": self.remove_run,
            "remove_locks": self.remove_locks,
            "remove_log": self.remove_log,
            "edit_manifest": self.edit_manifest,
            "break_manifest": self.break_manifest,
            "disown": self.disown,
            **self._replacements(self._manifest),
            **self._replacements(self._owner),
        }

    def undo(self) -> None:
        """Leave a plain folder for the next round; what was damaged stays with the ledger."""
        if self._folder.is_symlink():
            self._folder.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)
        for path in self._aside.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        if self._manifest.is_dir() and not self._manifest.is_symlink():
            shutil.rmtree(self._manifest)  # git would keep it
        self._project.git("checkout", "-q", "HEAD", "--", ".")


def repeated(project: Guarded, aside: Path) -> list[tuple[str, int]]:
    """Cycles that any of the logs that there are ends more than once."""
    logs = [project.log, *aside.glob(f"*/agents/{AGENT}/ops.jsonl")]
    found = []
    for log in logs:
        ended = collections.Counter(one["cycle"] for one in project.events("cycle.ended", log))
        found += [(str(log), cycle) for cycle, times in ended.items() if times > 1]
    return found


class Figures:
    def __init__(self) -> None:
        self.done: collections.Counter[str] = collections.Counter()
        self.codes: collections.Counter[str] = collections.Counter()
        self.stops: list[float] = []
        self.together = 0
        """Rounds in which the agent ran when its folder was damaged."""


def start_agent(project: Guarded, supervisor: list[Started]) -> None:
    """Have an agent at work, whose supervisor is this test's own."""
    before = len(project.told("start"))
    supervisor.append(project.start("run"))
    project.until_up(after=before, timeout=90)


def has_spoken(project: Guarded, started: Started) -> bool:
    """Return whether a command has exited, or has printed what it does."""
    return started.pid in project.place.ended or bool(started.out)


def play(project: Guarded, damage: Damage, rng: random.Random, figures: Figures) -> None:
    """Damage the folder while commands that start agents are under way, then stop everything."""
    running: list[Started] = []
    start_agent(project, running)
    damage.keep_copy()
    time.sleep(rng.uniform(0, LAUNCH_SECONDS))  # the moment is what is tried
    name = rng.choice(sorted(name for name in damage.ways() if ONLY in name))
    commands = [rng.choice(COMMANDS) for _ in range(rng.choice((1, 2, 3)))]
    is_before = rng.random() < 0.3
    figures.together += bool(project.agents())
    if is_before:
        running += [project.start(*words) for words in commands]
    try:
        damage.ways()[name]()
    except (OSError, shutil.Error, subprocess.CalledProcessError):
        name = f"{name} (in part)"  # the supervisor wrote or ended in between
    if not is_before:
        running += [project.start(*words) for words in commands]
    figures.done[name] += 1
    time.sleep(rng.uniform(0, 0.4))
    # A command that is still coming up would say `running` after the stop, and rightly be obeyed.
    project.place.wait_for(lambda: all(has_spoken(project, one) for one in running), 60)
    began = time.monotonic()
    stopping = project.start("stop")
    code = stopping.wait(60)
    took = time.monotonic() - began
    figures.codes[f"stop {code}"] += 1
    said = f"{name}: stop {code} after {took:.1f} s: {stopping.out}{stopping.err}"
    # No stop can be recorded for another host's agent; one that runs here has still ended.
    assert code in ({0, 13, 6} if name == "disown" else {0, 13}), said
    # A supervisor that was starting when the stop came obeys it too: it does not start, or exits.
    project.place.wait_for(lambda: not project.agents() and not project.supervisors(), 30)
    figures.stops.append(time.monotonic() - began)
    assert figures.stops[-1] <= STOP_SECONDS, said
    for started in running:
        ended = started.wait()
        figures.codes[str(ended)] += 1
        assert ended >= 0, f"{name}: {ended}: {started.out}{started.err}"
        assert ended not in CRASHED, f"{name}: {ended}: {started.out}{started.err}"


def test_never_two_agents_whatever_happens_to_the_folder(place: Place, in_memory: Path):
    project = Guarded(place, in_memory, seconds=LAUNCH_SECONDS)
    aside = in_memory / "aside"
    aside.mkdir()
    figures, rng = Figures(), random.Random(SEED)
    damage = Damage(project, aside, rng)
    for number in range(ROUNDS):
        play(project, damage, rng, figures)
        where = f"round {number}, seed {SEED}, {dict(figures.done)}"
        assert project.told("fault") == [], where
        assert repeated(project, aside) == [], where
        damage.undo()
        if number % 25 == 24:
            print(f"{number + 1} rounds, slowest stop {max(figures.stops):.1f} s", flush=True)
    assert sum(figures.done.values()) == ROUNDS
    assert figures.together > ROUNDS // 3
    assert len(set(damage.absences)) == len(damage.absences)
    slowest = max(figures.stops)
    print(
        f"\n{ROUNDS} rounds, seed {SEED}: {dict(figures.done)};"
        f" {len(project.told('start'))} agents started, {figures.together} at work when the folder"
        f" was damaged, 0 beside another, 0 cycles ended twice; stop took"
        f" {sum(figures.stops) / len(figures.stops):.1f} s on average, {slowest:.1f} s at most;"
        f" exit codes {dict(figures.codes)}"
    )


def test_no_two_absences_have_the_same_length(place: Place, tmp_path: Path):
    """The seed decides them, and a rename and a link draw from the same numbers."""
    aside = tmp_path / "aside"
    project, drawn = Guarded(place, tmp_path), []
    for _ in range(2):
        damage = Damage(project, aside, random.Random(SEED))
        for act in (damage.rename, damage.link) * 2:
            act()
        drawn.append(damage.absences)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 4
    assert project.path.is_dir()
    assert not project.path.is_symlink()


WITHOUT: Final = """\
import pathlib, runpy, sys
from rekindle.system.files import user_folder
own = pathlib.Path(sys.argv.pop(1))
user_folder.find_user_folder = lambda: own
runpy.run_module("rekindle", run_name="__main__")
"""
"""Rekindle with a user folder of its own: it does not find the outer locks of others."""


def test_without_the_outer_lock_there_are_two(place: Place, tmp_path: Path):
    """The check above can fail: the first supervisor is frozen, and has no common outer lock."""
    project = Guarded(place, tmp_path)
    program = tmp_path / "without.py"
    program.write_text(WITHOUT)
    folders = [tmp_path / "one", tmp_path / "two"]

    def run(folder: Path) -> Started:
        folder.mkdir(mode=0o700)
        argv = [sys.executable, "-I", str(program), str(folder), "run"]
        return place.start(
            argv, env={"PATH": "/usr/bin:/bin", "REKINDLE_TRUST": "1"}, cwd=project.path
        )

    first = run(folders[0])
    project.until_up(timeout=90)
    first.signal(signal.SIGSTOP)
    project.git("clean", "-fdxq")
    second = run(folders[1])
    place.wait_for(lambda: len(project.told("fault")) == 1, 90)
    assert len(project.agents()) == 2
    assert {first.pid, second.pid} <= set(place.living())
