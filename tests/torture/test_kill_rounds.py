"""kill -9 of each real CLI in the middle of its tools, again and again: nothing survives it.

The tools are of the kinds that outlive the CLI: one waits in the foreground, one has a session of
its own, one has lost its parent, and one of these ignores SIGTERM. All of them must be gone when
the model is next asked. CI plays a few rounds; `just torture` plays 200.
"""

import os
import random
import shlex
import signal
import sys
from typing import Final

import pytest

from e2e.sandbox import BANNER, Rekindle
from loopback.script import Hang, Text
from torture.clis import NAMES, Cli

pytestmark = pytest.mark.torture

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
ROUNDS: Final = (
    {"claude-code": 90, "codex": 90, "gemini": 20}
    if WHOLE
    else {"claude-code": 2, "codex": 2, "gemini": 1}
)
IN_A_ROW: Final = 4
"""Kills of one session, which is one less than a supervisor takes; then a new one begins."""
SEED: Final = 20260409
TOOLS: Final = ("waited-for", "own-session", "nobody-s", "nobody-s-own-session")
WORK: Final = """\
import pathlib, signal, sys, time
if sys.argv[2] == "deaf": signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


def line(number: int, deaf: str) -> str:
    """Return the tools of a round as a shell line, which runs as long as the first of them."""

    def work(tool: str) -> str:
        hears = "deaf" if tool == deaf else "hears"
        return shlex.join([sys.executable, "-c", WORK, f"begun-{number}-{tool}", hears])

    first, own, nobodys, both = map(work, TOOLS)
    return f"setsid {own} & ( ( {nobodys} & ) & ); setsid sh -c {shlex.quote(f'{both} &')}; {first}"


def alive(rekindle: Rekindle) -> list[str]:
    """The tools that live, by the file that each has made."""
    return [argv[3] for argv in rekindle.place.processes() if argv[1:3] == ["-c", WORK]]


def killed(rekindle: Rekindle, number: int) -> None:
    """Kill the CLI, and it alone, once all of its tools work."""
    project = rekindle.project
    begun = [project / f"begun-{number}-{tool}" for tool in TOOLS]
    hooked = project / "hooked"
    rekindle.place.wait_for(lambda: hooked.exists() and all(path.exists() for path in begun))
    assert sorted(alive(rekindle)) == sorted(path.name for path in begun)
    pid = int(hooked.read_text())
    hooked.unlink()
    rekindle.place.signal(pid, signal.SIGKILL)


@pytest.mark.parametrize("cli", NAMES, indirect=True)
def test_nothing_survives_when_the_model_is_next_asked(cli: Cli):
    """Every tool is gone, one process of the CLI is running, and the same session resumes."""
    rng = random.Random(SEED)
    rekindle = cli.supervised()
    left = ROUNDS[cli.name]
    number = 0
    while left:
        count = min(left, IN_A_ROW)
        calls = [
            cli.kind.shell(line(number + place, rng.choice(("", *TOOLS[1:]))))
            for place in range(count)
        ]
        hangs = [Hang(answer) for answer in (*calls[1:], Text("all done"))]
        cli.model.play(calls[0], *hangs)
        running = rekindle.start("run")
        for hang in hangs:
            killed(rekindle, number)
            asked = cli.asked(hang)
            assert alive(rekindle) == [], f"round {number}, seed {SEED}"
            assert len(rekindle.agents()) == 1
            assert BANNER not in asked.text
            hang.release.set()
            number += 1
        assert running.wait() == 0, running.err
        started = rekindle.events("launch.started")[-count - 1 :]
        assert len({one["session"] for one in started[1:]}) == 1
        ended = rekindle.events("launch.ended")[-count - 1 :]
        assert [one["exit"] for one in ended] == [*["crash"] * count, "clean"]
        assert all(one["swept"] >= len(TOOLS) - 1 for one in ended[:-1])
        left -= count
    print(f"\n{cli.name}: {number} kills, {len(TOOLS) * number} tools, 0 survivors; seed {SEED}")
