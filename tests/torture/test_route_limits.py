"""Two accounts of Claude Code and one of Codex, with usage limits at random moments.

A scripted model that all accounts share hands out numbered calls. It refuses an account at random
moments until the account's limit resets, and notes when it refuses and when it is asked again.
CI plays a few rounds; `just torture` plays 100.
"""

import itertools
import random
import statistics
import threading
import time
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from e2e.handing import MARK, step
from e2e.routing import Routing, refuse, shell
from e2e.test_routes import accounts, begin, own_model, programs, routing
from loopback.script import Script, Step, Text
from sampling import WHOLE

__all__ = ["accounts", "own_model", "programs", "routing"]

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3000)]

SEEDS, CYCLES = (range(5), 20) if WHOLE else ([0], 2)
"""Projects, and cycles in each. Later, empty files would no longer count as progress."""
CALLS = 4
"""Calls in each cycle."""
RESET_SECONDS = 3
ROUTES = ("claude-code/work", "claude-code/own", "codex/spare")
MOST_STARTS = 3.0
"""The time until work continues, in starts of the CLI itself."""


class Director:
    """Hands out the calls of all cycles in order, and refuses accounts of Claude Code."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.made: list[str] = []
        """Names of the calls, in order."""
        self.resets: dict[str, float] = {}
        self.refusals: list[tuple[float, str]] = []
        self.answers: list[tuple[float, str]] = []
        """Time and route of each answer."""
        self.asked: list[tuple[str, int]] = []
        """Route of each request, and the number of calls that its session has made."""
        self.early: list[str] = []
        """Routes that were asked again before their limit reset."""
        self._plan()

    def _plan(self) -> None:
        """Choose before which calls of the cycle an account is refused."""
        self._left, self._session = CALLS, 0
        places = range(CALLS + 1)
        self._refused_at = sorted(self._random.sample(places, self._random.choice((1, 1, 2))))

    def take(self, route: str, cli: str) -> Step:
        with self._lock:
            now = time.time()
            self.asked.append((route, self._session))
            if now < self.resets.get(route, 0.0):
                self.early.append(route)
                return refuse(cli, self.resets[route] - now)
            done = CALLS - self._left
            if cli == "claude" and self._refused_at and self._refused_at[0] <= done:
                self._refused_at.pop(0)
                answer = refuse(cli, RESET_SECONDS)
                self.resets[route] = int(now + RESET_SECONDS)
                self.refusals.append((now, route))
                return answer
            self.answers.append((now, route))
            if not self._left:
                self._plan()
                return Text("done with this cycle")
            self._left -= 1
            self._session += cli == "claude"
            name = f"{len(self.made)};"
            self.made.append(name)
            # A new file is progress; without any, launches would be paced.
            return shell(cli, f"{step(name)} && touch made_{len(self.made)}.py")


class Directed(Script):
    def __init__(self, director: Director, route: str, cli: str) -> None:
        super().__init__()
        self._director, self._route, self._cli = director, route, cli

    def take(self) -> tuple[int, Step]:
        return 0, self._director.take(self._route, self._cli)


def direct(routing: Any, director: Director) -> None:
    for route, cli, model in zip(
        ROUTES,
        ("claude", "claude", "codex"),
        (routing.claude, routing.own, routing.codex),
        strict=True,
    ):
        model._scripts["main"] = Directed(director, route, cli)


def measure_start(routing: Routing) -> float:
    """Return how long Claude Code itself takes until it asks its model, in seconds."""
    times = []
    for _ in range(5):
        before, asked = time.time(), len(routing.claude.log.main)
        started = routing.rekindle.place.start(
            [str(routing.clis.program), "-p", "--output-format", "stream-json", "--verbose"],
            env=routing.clis.environment(),
            cwd=routing.project,
            stdin="go",
        )
        routing.rekindle.place.wait_for(lambda: len(routing.claude.log.main) > asked)  # noqa: B023
        times.append(time.time() - before)
        assert started.wait() == 0
    return statistics.median(times)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_at_any_moment(accounts, seed):
    """Nothing is done twice, no session loses a turn, and work returns at the reset."""
    begin(accounts, cycles=CYCLES, until="false")
    text = (accounts.project / "rekindle.yaml").read_text()
    # Repeated limits have a growing pause, which would be longer than these short limits.
    paused = "restart: {cooldown: 1s, max_cooldown: 1s}"
    runtime = f"runtime:\n  stall: {{pause: false, tell: false}}\n  {paused}\n"
    (accounts.project / "rekindle.yaml").write_text(text.replace("runtime:\n", runtime))
    bare = measure_start(accounts)
    first = len(accounts.claude.log.main)
    director = Director(seed)
    direct(accounts, director)
    started = accounts.rekindle.start("run", "trades", "--budget", "none")
    assert started.wait(1400) == 24, started.out + started.err
    assert accounts.worked == "".join(director.made)
    assert len(director.made) == CYCLES * CALLS
    assert director.early == []
    assert director.refusals
    launches = accounts.rekindle.events("launch.started")
    ended = {one["launch"]: one for one in accounts.rekindle.events("launch.ended")}
    assert_sessions_are_whole(accounts, director, launches, first)
    assert_returns(launches, ended)
    waits = [
        next(then for then, _ in director.answers if then > when) - when
        for when, _ in director.refusals
    ]
    ratios = [wait / bare for wait in waits]
    print(
        f"\n{CYCLES} cycles, {len(director.refusals)} limits,"
        f" launches {dict(Counter(route_of(one) for one in launches))};"
        f" start of the CLI {bare:.2f} s; until work continued, in starts:"
        f" median {statistics.median(ratios):.2f},"
        f" 90 % {sorted(ratios)[len(ratios) * 9 // 10]:.2f},"
        f" most {max(ratios):.2f}"
    )
    # A sample of two says little about time on a busy machine.
    assert statistics.median(ratios) <= MOST_STARTS or not WHOLE


def route_of(launch: dict[str, Any]) -> str:
    return f"{launch['harness']}/{launch['account']}"


def assert_sessions_are_whole(routing, director, launches, first) -> None:
    """A session of Claude Code keeps its id and all its turns on the other account."""
    for before, after in itertools.pairwise(launches):
        is_moved = before["cycle"] == after["cycle"] and after["harness"] == "claude-code"
        if is_moved and before["harness"] == "claude-code" and director.answers:
            assert after["session"] == before["session"]
    logs = dict(
        zip(
            ROUTES,
            map(
                iter,
                (routing.claude.log.main[first:], routing.own.log.main, routing.codex.log.main),
            ),
            strict=True,
        )
    )
    for route, calls in director.asked:
        request = next(logs[route])
        if route.startswith("claude-code"):
            assert len(request.results) == calls, (route, request.text[-400:])
        elif not request.results and calls:
            assert MARK in request.text


def assert_returns(launches, ended) -> None:
    """Each cycle begins on the first route whose limit has reset."""
    resets: dict[str, float] = {}
    cycle, before = 0, 0.0
    for one in launches:
        began = datetime.fromisoformat(one["ts"]).timestamp()
        if one["cycle"] != cycle:
            cycle = one["cycle"]
            # The route was chosen between the end of the last launch and this start.
            frees = {
                next(route for route in ROUTES if resets.get(route, 0.0) <= moment)
                for moment in (before, *(at for at in resets.values() if before < at <= began))
            }
            assert route_of(one) in frees, (one, resets)
        end = ended[one["launch"]]
        before = datetime.fromisoformat(end["ts"]).timestamp()
        if end["exit"] == "limit":
            resets[route_of(one)] = end["resets_at"]
