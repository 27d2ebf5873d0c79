"""Two accounts of Claude Code and one of Codex, with usage limits at random moments.

A scripted model that all accounts share hands out numbered calls. It refuses an account at random
moments until the account's limit resets, and notes when it refuses and when it is asked again. In
every fifth cycle, both accounts of Claude Code are limited at once, so Codex takes over. Before a
cycle ends, each CLI is started by itself, so that its time is measured on an equally busy machine.
CI plays a few rounds; `just torture` plays 100.
"""

import itertools
import queue
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from e2e.handing import MARK, step
from e2e.routing import Routing, refuse, shell
from e2e.test_routes import accounts, begin, own_model, programs, routing
from loopback import codex_cli
from loopback.anthropic import Anthropic
from loopback.model import Model
from loopback.openai import OpenAI
from loopback.script import Hang, Script, Step, Text
from sampling import WHOLE

__all__ = ["accounts", "own_model", "programs", "routing"]

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3000)]

SEEDS, CYCLES = (range(5), 20) if WHOLE else ([0], 2)
"""Projects, and cycles in each. Later, empty files would no longer count as progress."""
CALLS = 4
"""Calls in each cycle."""
RESET_SECONDS = 3
BOTH_EVERY = 5
"""Cycles from one in which both accounts of Claude Code are limited at once to the next one."""
BOTH_STARTS = 12
"""How long both are limited, in starts of Claude Code: longer than two moves take."""
ROUTES = {"claude-code/work": "claude", "claude-code/own": "claude", "codex/spare": "codex"}
"""The routes in order, and their CLIs."""
MOST_STARTS = 3.0
"""The time until work continues, in starts of the CLI itself."""


@dataclass(frozen=True)
class Asked:
    """One request to the model."""

    at: float
    route: str
    session: tuple[str, ...]
    """Names of the calls that the cycle's session of Claude Code has made."""
    is_refused: bool
    cycle: int


@dataclass(frozen=True)
class CycleEnd:
    """The last answer of a cycle, which waits until the test releases it."""

    answer: Hang
    earliest: float
    """Unix time before which it must not be released."""


class Director:
    """Hands out the calls of all cycles in order, and refuses accounts of Claude Code."""

    def __init__(self, seed: int, both_seconds: float) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._both_seconds = both_seconds
        self.made: list[str] = []
        """Names of the calls, in order."""
        self.resets: dict[str, float] = {}
        self.asked: list[Asked] = []
        self.early: list[str] = []
        """Routes that were asked again before their limit reset."""
        self.ends: queue.Queue[CycleEnd] = queue.Queue()
        self._cycle = 0
        self._plan()

    def _plan(self) -> None:
        """Choose before which calls of the cycle an account is refused."""
        self._left, self._session = CALLS, ()
        self._cycle += 1
        is_both = self._cycle % BOTH_EVERY == 1
        self._reset = 0.0
        self._seconds = self._both_seconds if is_both else RESET_SECONDS
        count = 2 if is_both else self._random.choice((1, 1, 2))
        self._refused_at = sorted(self._random.sample(range(CALLS + 1), count))

    def take(self, route: str) -> Step:
        with self._lock:
            now, cli = time.time(), ROUTES[route]
            answer = self._refuse(route, now) if cli == "claude" else None
            self.asked.append(Asked(now, route, self._session, answer is not None, self._cycle))
            return answer or self._work(cli)

    def _refuse(self, route: str, now: float) -> Step | None:
        if now < self.resets.get(route, 0.0):
            self.early.append(route)
            return refuse("claude", self.resets[route] - now)
        if not self._refused_at or self._refused_at[0] > CALLS - self._left:
            return None
        self._refused_at.pop(0)
        if self._seconds == RESET_SECONDS or not self._reset:
            self._reset = int(now + self._seconds)
        self.resets[route] = self._reset
        return refuse("claude", self._reset - now)

    def _work(self, cli: str) -> Step:
        if not self._left:
            last = Hang(Text("done with this cycle"))
            # After a takeover by Codex, the next cycle begins when both accounts are free again.
            self.ends.put(CycleEnd(last, self._reset if cli == "codex" else 0.0))
            self._plan()
            return last
        self._left -= 1
        name = f"{len(self.made)};"
        self.made.append(name)
        if cli == "claude":
            self._session += (name,)
        # A new file is progress; without any, launches would be paced.
        return shell(cli, f"{step(name)} && touch {_file(name)}")

    @property
    def refusals(self) -> list[Asked]:
        return [one for one in self.asked if one.is_refused]


def _file(name: str) -> str:
    """Return the file that a call creates."""
    return f"made_{name.removesuffix(';')}.py"


class Directed(Script):
    def __init__(self, director: Director, route: str) -> None:
        super().__init__()
        self._director, self._route = director, route

    def take(self) -> tuple[int, Step]:
        return 0, self._director.take(self._route)


class Stamped(Script):
    """Answers all requests, and notes when they arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.stamps: list[float] = []

    def take(self) -> tuple[int, Step]:
        self.stamps.append(time.time())
        return 0, Text("hello")


def direct(routing: Any, director: Director) -> None:
    for route, model in zip(ROUTES, (routing.claude, routing.own, routing.codex), strict=True):
        model._scripts["main"] = Directed(director, route)


class BareClis:
    """Each CLI without Rekindle, with its own configuration folder and model."""

    def __init__(self, routing: Routing, claude: Model, codex: Model) -> None:
        self._routing, clis = routing, routing.clis
        one = clis.make_claude(clis.home / "bare-claude", claude)
        two = clis.make_codex(clis.home / "bare-codex", codex, key="sk-test-bare")
        stream = ("-p", "--output-format", "stream-json", "--verbose")
        self._kinds = {
            "claude": (claude, stream, {"CLAUDE_CONFIG_DIR": str(one)}),
            "codex": (codex, codex_cli.HEADLESS, {"CODEX_HOME": str(two)}),
        }

    def measure(self) -> dict[str, float]:
        """Return how long each CLI takes until it asks its model, in seconds."""
        return {cli: self._measure(cli) for cli in self._kinds}

    def _measure(self, cli: str) -> float:
        model, words, variables = self._kinds[cli]
        script = model._scripts["main"] = Stamped()
        place, began = self._routing.rekindle.place, time.time()
        started = place.start(
            [str(self._routing.clis.bin / cli), *words],
            env=self._routing.clis.environment(**variables),
            cwd=self._routing.project,
            stdin="go",
        )
        assert started.wait() == 0, started.err
        return script.stamps[0] - began


@pytest.fixture
def bare(accounts, network) -> Iterator[BareClis]:
    with (
        Model(Anthropic(), network.listen(0)) as claude,
        Model(OpenAI(), network.listen(0)) as codex,
    ):
        yield BareClis(accounts, claude, codex)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_at_any_moment(accounts, bare, seed):
    """Nothing is done twice, no session loses a turn, and work returns at the reset."""
    begin(accounts, cycles=CYCLES, until="false")
    text = (accounts.project / "rekindle.yaml").read_text()
    # Repeated limits have a growing pause, which would be longer than these short limits.
    paused = "restart: {cooldown: 1s, max_cooldown: 1s}"
    runtime = f"runtime:\n  stall: {{pause: false, tell: false}}\n  {paused}\n"
    (accounts.project / "rekindle.yaml").write_text(text.replace("runtime:\n", runtime))
    bare.measure()  # the first start takes longer
    director = Director(seed, max(RESET_SECONDS + 1, BOTH_STARTS * bare.measure()["claude"]))
    direct(accounts, director)
    running = accounts.rekindle.start("run", "trades", "--budget", "none")
    starts = [end_cycle(director, bare) for _ in range(CYCLES)]
    assert running.wait() == 24, running.out + running.err
    assert accounts.worked == "".join(director.made)
    assert len(director.made) == CYCLES * CALLS
    assert director.early == []
    launches = accounts.rekindle.events("launch.started")
    ends = {one["launch"]: one for one in accounts.rekindle.events("launch.ended")}
    limits = Counter(one["cycle"] for one in ends.values() if one["exit"] == "limit")
    assert limits.keys() == set(range(1, CYCLES + 1)), "a cycle had no limit"
    assert limits.total() == len(director.refusals)
    assert_sessions_are_whole(accounts, director, launches)
    assert_returns(launches, ends)
    moves = list(list_moves(director, launches, ends, starts))
    for cli in ("claude", "codex"):
        print_moves([move for move in moves if move.cli == cli])
    # On a machine that is busy enough, both limits reset before the second move.
    assert {move.cli for move in moves} == {"claude", "codex"} or not WHOLE
    # A sample of two says little about time on a busy machine.
    ratios = [move.seconds / move.starts["claude"] for move in moves]
    assert statistics.median(ratios) <= MOST_STARTS or not WHOLE


def end_cycle(director: Director, bare: BareClis) -> dict[str, float]:
    """Release the last answer of a cycle, and return how long each CLI takes to start now."""
    end = director.ends.get(timeout=600)
    starts = bare.measure()
    timer = threading.Timer(max(end.earliest - time.time(), 0.0), end.answer.release.set)
    timer.start()
    timer.join()
    return starts


def route_of(launch: dict[str, Any]) -> str:
    return f"{launch['harness']}/{launch['account']}"


def time_of(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["ts"]).timestamp()


def assert_sessions_are_whole(routing, director, launches) -> None:
    """A session of Claude Code keeps its id and all its turns; Codex gets them in a checkpoint."""
    for before, after in itertools.pairwise(launches):
        is_moved = before["cycle"] == after["cycle"] and after["harness"] == "claude-code"
        if is_moved and before["harness"] == "claude-code":
            assert after["session"] == before["session"]
    models = (routing.claude, routing.own, routing.codex)
    logs = {route: iter(model.log.main) for route, model in zip(ROUTES, models, strict=True)}
    for one in director.asked:
        request = next(logs[one.route])
        if ROUTES[one.route] == "claude":
            calls = [part.text for part in request.parts if part.form == "call"]
            assert len(request.results) == len(calls) == len(one.session), (one, request.text)
            for call, name in zip(calls, one.session, strict=True):
                assert f"touch {_file(name)}" in call
        elif not request.results and one.session:
            assert MARK in request.text
            assert all(_file(name) in request.text for name in one.session)


def assert_returns(launches, ends) -> None:
    """Each cycle begins on the first route whose limit has reset."""
    resets: dict[str, float] = {}
    cycle, before = 0, 0.0
    for one in launches:
        began = time_of(one)
        if one["cycle"] != cycle:
            cycle = one["cycle"]
            # The route was chosen between the end of the last launch and this start.
            frees = {
                next(route for route in ROUTES if resets.get(route, 0.0) <= moment)
                for moment in (before, *(at for at in resets.values() if before < at <= began))
            }
            assert route_of(one) in frees, (one, resets)
        end = ends[one["launch"]]
        before = time_of(end)
        if end["exit"] == "limit":
            resets[route_of(one)] = end["resets_at"]


@dataclass(frozen=True)
class WorkMove:
    """The time from a limit until the work continues."""

    cli: str
    """The CLI that continues."""
    parts: tuple[float, float, float]
    """Seconds until the old CLI has exited, the next launch is recorded, and its CLI asks."""
    starts: dict[str, float]
    """Seconds that each CLI takes to start by itself, around this cycle."""

    @property
    def seconds(self) -> float:
        return sum(self.parts)


def list_moves(director, launches, ends, starts) -> Iterator[WorkMove]:
    limited = [one for one in launches if ends[one["launch"]]["exit"] == "limit"]
    for refused, launch in zip(director.refusals, limited, strict=True):
        follower = launches[launches.index(launch) + 1]
        asked = next(one for one in director.asked if one.at > refused.at and not one.is_refused)
        moments = (refused.at, time_of(ends[launch["launch"]]), time_of(follower), asked.at)
        parts = tuple(after - before for before, after in itertools.pairwise(moments))
        near = starts[max(refused.cycle - 2, 0) : refused.cycle + 1]
        alone = {cli: statistics.median(one[cli] for one in near) for cli in near[0]}
        yield WorkMove(ROUTES[asked.route], parts, alone)


def print_moves(moves: list[WorkMove]) -> None:
    for name in moves[0].starts if moves else ():
        ratios = sorted(move.seconds / move.starts[name] for move in moves)
        print(
            f"\n{len(moves)} moves to {moves[0].cli}, in starts of {name}:"
            f" median {statistics.median(ratios):.2f}, 95 % {ratios[len(ratios) * 95 // 100]:.2f},"
            f" most {ratios[-1]:.2f}, above {MOST_STARTS:g}:"
            f" {sum(ratio > MOST_STARTS for ratio in ratios)}"
        )
    for move in moves:
        told = " + ".join(f"{part:.2f}" for part in move.parts)
        alone = ", ".join(f"{name} {seconds:.2f}" for name, seconds in move.starts.items())
        print(f"  exit, our work, start: {told} = {move.seconds:.2f} s; by itself {alone} s")
