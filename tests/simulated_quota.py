"""Weeks of eight agents and a person on one account, with bursts and resets.

The account has a window of five hours, which begins with the first call after its reset, and one of
a week. Agents get work in bursts, some many times a day and some twice a week, and do it in cycles
of several turns. Work that has to wait is not lost. The person works on weekdays, and the agents
notice that only by the numbers that come with their own next call. The rules for pacing are the
real ones; the vendor, the work and the clock are simulated.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from rekindle.documents.agent_ledger import AgentLedger, Priority
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.policy.quota.account_windows import add_windows, has_changed
from rekindle.policy.quota.ledger_entries import add_spending
from rekindle.policy.quota.pacing import (
    find_last_part_hold,
    find_pace_hold,
    find_reserve_hold,
)
from rekindle.policy.supervision.budget import RunSpending

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
TURN = timedelta(minutes=3)
WEEK = timedelta(days=7)
ASKS = timedelta(minutes=9)
"""How often a waiting agent asks again. The real supervisor asks every minute."""
NOTED_TURNS = 3
"""Number of turns after which a working agent updates its ledger."""
RESERVE = 20.0
WEEK_TURNS = WEEK // TURN
BURST_TURNS = 200
"""Turns of one burst of work, on average: ten hours."""


@dataclass
class Window:
    """A window of the vendor, in points: a hundred are all that five hours allow."""

    name: str
    length: timedelta
    points: float
    resets_at: datetime = START
    used: float = 0.0
    hit: bool = False
    taken: float = 0.0
    """Percent that agents used after the rest was in reserve."""

    @property
    def percent(self) -> float:
        return self.used * 100 / self.points


@dataclass
class Worker:
    """An agent: its work in points, what it is doing, and what it used in this week."""

    ledger: AgentLedger
    speed: float
    """Points of a turn, on average."""
    pause: float
    """Hours between two bursts of work, on average."""
    random: random.Random
    """Source of the agent's bursts, which do not depend on the rules for pacing."""
    next_burst: datetime = START
    work: float = 0.0
    free_work: float = 0.0
    """Work that would be left if the agent had the account for itself since the week began."""
    turns_left: int = 0
    rate: float = 0.0
    waits_until: datetime = START
    used: float = 0.0
    wanted: float = 0.0
    total: float = 0.0
    was_held: bool = False
    """Whether the agent had to wait in this week."""
    leaves: bool = False
    """Whether the agent's run ends with its work, so that it gives up its share."""


@dataclass
class Week:
    """What happened in one week."""

    hits: int = 0
    """Windows in which an agent was refused."""
    resets: int = 0
    refused: int = 0
    """Calls of agents that were refused."""
    person_refused: int = 0
    person_turns: int = 0
    taken: float = 0.0
    """Largest part of a window, in percent, that agents took from the reserve."""
    used: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """Each agent's usage as a part of its fair share."""


class SimulatedAccount:
    def __init__(
        self, seed: int, *, paced: bool, priorities: Sequence[Priority] = ("normal",) * 8
    ) -> None:
        self._random = random.Random(seed)
        self._paced = paced
        self._now = START
        self._load = self._random.uniform(0.03, 0.18)
        self._windows = [
            Window("5 hours", timedelta(hours=5), 100.0),
            Window("7 days", WEEK, self._random.uniform(600.0, 1500.0)),
        ]
        self._workers = [
            Worker(
                AgentLedger("/project", f"agent-{number}", priority),
                self._load * self._random.uniform(0.5, 2.0),
                self._random.uniform(4.0, 84.0),
                random.Random(f"{seed}-{number}"),
                leaves=number % 2 == 1,
            )
            for number, priority in enumerate(priorities)
        ]
        self._stored: tuple[QuotaWindow, ...] = ()
        self._person = random.Random(f"{seed}-person")
        self._person_until = START
        self._person_rate = 0.0
        self._week = Week()

    def play(self, weeks: int) -> Iterator[Week]:
        for _ in range(weeks):
            self._week = Week()
            for worker in self._workers:
                worker.used = worker.wanted = 0.0
                worker.was_held = False
                worker.free_work = worker.work
            for _ in range(WEEK_TURNS):
                self._play_turn()
            for window in self._windows:
                self._week.taken = max(self._week.taken, window.taken)
            self._week.used = [worker.used for worker in self._workers]
            self._week.shares = self._measure_shares()
            yield self._week

    def _play_turn(self) -> None:
        self._now += TURN
        for window in self._windows:
            if self._now >= window.resets_at and (window.used or window.length == WEEK):
                self._reset(window)
        self._play_person()
        order = list(self._workers)
        self._random.shuffle(order)
        for worker in order:
            self._play_worker(worker)

    def _reset(self, window: Window) -> None:
        self._week.resets += 1
        self._week.taken = max(self._week.taken, window.taken)
        window.used, window.taken, window.hit = 0.0, 0.0, False
        if window.length == WEEK:
            window.resets_at += WEEK

    def _play_person(self) -> None:
        """Let the person work, in sessions of half an hour to two hours, on weekdays."""
        is_day = self._now.weekday() < 5 and 8 <= self._now.hour < 19
        if is_day and self._now >= self._person_until and self._person.random() < 0.018:
            self._person_until = self._now + timedelta(minutes=self._person.uniform(30, 120))
            self._person_rate = self._person.uniform(0.08, 0.45)
        if self._now < self._person_until:
            self._week.person_turns += 1
            if not self._call(self._person_rate, is_person=True):
                self._week.person_refused += 1

    def _call(self, points: float, *, is_person: bool = False) -> bool:
        """Use the account, or return False if the vendor refuses the call."""
        full = [window for window in self._windows if window.used >= window.points]
        if full:
            for window in full:
                if not is_person:
                    self._week.refused += 1
                    self._week.hits += not window.hit
                    window.hit = True
            return False
        for window in self._windows:
            if not window.used and window.length != WEEK:
                window.resets_at = self._now + window.length
            before = window.percent
            window.used += points
            if not is_person:
                window.taken += max(0.0, window.percent - max(before, 100.0 - RESERVE))
        return True

    def _report(self) -> None:
        """Store the numbers that came with an agent's call, as a supervisor does."""
        reported = [
            QuotaWindow(
                window.name,
                window.percent,
                window.resets_at,
                int(window.length.total_seconds() // 60),
            )
            for window in self._windows
        ]
        if has_changed(self._stored, reported):
            self._stored = add_windows(self._stored, reported, self._now)

    def _play_worker(self, worker: Worker) -> None:
        if self._now >= worker.next_burst:
            pause = timedelta(hours=worker.random.expovariate(1 / worker.pause))
            worker.next_burst = self._now + pause
            size = worker.random.expovariate(1 / BURST_TURNS) * worker.speed
            worker.work += size
            worker.free_work += size
        wanted = min(worker.free_work, worker.rate if worker.turns_left else worker.speed)
        worker.wanted += wanted
        worker.free_work -= wanted
        if worker.work <= 0 or self._now < worker.waits_until:
            return
        if self._paced and (until := self._find_hold(worker)):
            worker.waits_until = min(until, self._now + ASKS)
            return
        if not worker.turns_left:
            worker.turns_left = self._random.randint(5, 30)
            worker.rate = worker.speed * self._random.uniform(0.3, 1.7)
        if not self._call(worker.rate):
            self._report()
            worker.was_held = True
            worker.waits_until = max(
                window.resets_at for window in self._windows if window.used >= window.points
            )
            return
        self._report()
        worker.work = max(0.0, worker.work - worker.rate)
        worker.turns_left = worker.turns_left - 1 if worker.work > 0 else 0
        worker.used += worker.rate
        worker.total += worker.rate
        if worker.turns_left % NOTED_TURNS == 0:
            self._note(worker, is_working=True)
        if worker.leaves and worker.work <= 0:
            self._note(worker, is_working=False)
            worker.ledger = msgspec.structs.replace(worker.ledger, asked_at=None)

    def _find_hold(self, worker: Worker) -> datetime | None:
        """Return until when the agent waits: for its share only before a launch.

        A hold within a cycle stops the launch, so the agent then waits as before a new one.
        """
        ledgers = [each.ledger for each in self._workers]
        others = [each for each in ledgers if each is not worker.ledger]
        hold = find_reserve_hold(self._stored, RESERVE, others, self._now)
        if hold is None:
            hold = find_last_part_hold(self._stored, RESERVE, worker.ledger, others, self._now)
        if hold is None and not worker.turns_left:
            hold = find_pace_hold(self._stored, RESERVE, worker.ledger, others, self._now)
        if hold is None:
            return None
        worker.was_held, worker.turns_left = True, 0
        self._note(worker, is_working=False, waits=hold.is_turn)
        return hold.until

    def _note(self, worker: Worker, *, is_working: bool, waits: bool = False) -> None:
        spent = RunSpending(usd=worker.total)
        ledger = add_spending(worker.ledger, "1", spent, self._now)
        worker.ledger = msgspec.structs.replace(
            ledger, asked_at=self._now, is_working=is_working, waits=waits
        )

    def _measure_shares(self) -> list[float]:
        """Return each agent's usage as a part of the fair one, which depends on its priority."""
        weights = {"high": 2.0, "normal": 1.0, "low": 0.5}
        weighted = [(each.wanted, weights[each.ledger.priority]) for each in self._workers]
        left, level = sum(worker.used for worker in self._workers), float("inf")
        greedy = list(weighted)
        while greedy:
            level = left / sum(weight for _, weight in greedy)
            modest = [one for one in greedy if one[0] <= level * one[1]]
            if not modest:
                break
            left -= sum(wanted for wanted, _ in modest)
            greedy = [one for one in greedy if one not in modest]
        else:
            level = float("inf")  # there was enough for all
        fair = [min(wanted, level * weight) for wanted, weight in weighted]
        return [
            worker.used / due if worker.was_held and due else 1.0
            for worker, due in zip(self._workers, fair, strict=True)
        ]
