"""Two years of a host with a schedule: it sleeps, its daemon is killed, and its clock is wrong.

The flow and the policy are the real ones. The world has a disk, an agent whose runs take time, and
an operator. It notes what becomes of each due time, and breaks off as soon as one is started twice,
started although it was recorded as skipped, or left without a record.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
from schedule_facts import Oracle, draw_schedule

from rekindle.errors import AgentError
from rekindle.flows.schedules.start_due_run import SchedulePorts, start_due_run
from rekindle.policy.schedules.decide_run import RunFacts
from rekindle.policy.schedules.schedule_record import ScheduleRecord
from rekindle.policy.schedules.schedule_rules import encode_schedule, make_rules
from rekindle.system.clock import find_zone
from rekindle.thresholds.schedule_limits import SCHEDULE_COUNTED, SCHEDULE_GRACE_SECONDS

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TWO_YEARS = timedelta(days=2 * 365)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
TICK = timedelta(microseconds=1)
GRACE = timedelta(seconds=SCHEDULE_GRACE_SECONDS)
OBSTACLE = "rekindle.yaml changed without a command from you"


class KilledError(BaseException):
    """The daemon was killed. Nothing may catch this."""


class BrokenPromiseError(AssertionError):
    pass


class ScheduleWorld:
    def __init__(self, seed, *, is_calm=False, length=TWO_YEARS):
        self.random, self.is_calm, self.end = Random(seed), is_calm, BEGIN + length
        self.drawn = draw_schedule(self.random)
        self.every = self.drawn.every
        self.rules, self.oracle = make_rules("trades", self.every, find_zone), Oracle(self.drawn)
        self.true, self.offset = BEGIN + self.random.random() * DAY, timedelta(0)
        self.since = self.true
        self.disk: bytes | None = None
        self.written: ScheduleRecord | None = None
        self.starts: list[datetime] = []
        self.fate: dict[datetime, str] = {}
        self.run_ends = self.true
        self.obstacle = ""
        self.latest = self.true
        """Latest time that the daemon has seen on the clock."""
        self.counts = Counter[str]()
        self.ports = SchedulePorts(
            read=self._read,
            write=self._write,
            inspect=self._inspect,
            start=self._start,
            clock=lambda: self.now,
        )

    @property
    def now(self):
        return self.true + self.offset

    # The ports.

    def _read(self):
        self._may_be_killed("read")
        return msgspec.json.decode(self.disk, type=ScheduleRecord) if self.disk else None

    def _write(self, record):
        self._may_be_killed("before a write")
        self.disk = msgspec.json.encode(record)
        self._note_outcomes(self.written, msgspec.json.decode(self.disk, type=ScheduleRecord))
        self._may_be_killed("after a write")

    def _inspect(self, pending):
        self._may_be_killed("inspect")
        return RunFacts(
            is_running=self.is_running,
            has_started=pending is not None and pending.due in self.starts,
            obstacle=self.obstacle,
        )

    def _start(self, due):
        self._may_be_killed("before a start")
        if not self.is_calm and self.random.random() < 0.02:
            self.counts["failed starts"] += 1
            raise AgentError("the disk is full")
        if due in self.starts:
            raise BrokenPromiseError(f"{due} was started twice")
        if self.fate.get(due) is not None:
            raise BrokenPromiseError(f"{due} was started, but it was {self.fate[due]}")
        if self.is_running:
            raise BrokenPromiseError(f"{due} was started during another run")
        if self.obstacle:
            raise BrokenPromiseError(f"{due} was started in spite of an obstacle")
        self.starts.append(due)
        self.run_ends = self.true + self._draw_duration()
        self._may_be_killed("after a start")
        if not self.is_calm and self.random.random() < 0.02:
            raise AgentError("the supervisor did not come up")

    @property
    def is_running(self):
        return self.true < self.run_ends

    def _draw_duration(self):
        if self.random.random() < 0.05:
            return self.random.random() * 2 * DAY
        return self.random.random() * HOUR

    def _may_be_killed(self, when):
        if not self.is_calm and self.random.random() < 0.01:
            self.counts["kills"] += 1
            self.counts[f"killed: {when}"] += 1
            raise KilledError

    # What became of each due time, from the records on the disk.

    def _note_outcomes(self, before, after):
        self.written = after
        old = before.history if before else ()
        for outcome in after.history:
            if outcome in old:
                continue
            merged = next(
                (
                    earlier
                    for earlier in old
                    if (earlier.kind, earlier.first, earlier.reason)
                    == ("skipped", outcome.first, outcome.reason)
                    and earlier.count < outcome.count
                ),
                None,
            )
            count = outcome.count - (merged.count if merged else 0)
            first = merged.last + TICK if merged else outcome.first
            self._note(outcome.kind, first, outcome.last, count)

    def _note(self, kind, first, last, count):
        self.counts[kind] += count
        if kind == "started":
            if count != 1 or last not in self.starts:
                raise BrokenPromiseError(f"{last} is recorded as started, but was not")
            self._set_started(last)
            return
        before, fate = ("missed", None) if kind == "restored" else (None, kind)
        pending = self.written.pending.due if self.written.pending else None
        changed = [
            due
            for due in self.oracle.between(first - TICK, last)
            if self.fate.get(due) == before and due not in self.starts and due != pending
        ]
        for due in changed:
            self.fate[due] = fate
        if len(changed) != count and count < SCHEDULE_COUNTED:
            raise BrokenPromiseError(f"{count} {kind}, but there are {len(changed)}")

    def _set_started(self, due):
        if self.fate.get(due) is not None:
            raise BrokenPromiseError(f"{due} was {self.fate[due]}, then started")
        if not self.oracle.between(due - TICK, due):
            raise BrokenPromiseError(f"{due} is not a due time")
        self.fate[due] = "started"

    # The course of the two years.

    def play(self):
        while self.true < self.end:
            self._step()
        self.offset, self.obstacle = timedelta(0), ""
        self.is_calm = True
        # The host is up, its clock is correct, and its last run has ended.
        for _ in range(3):
            self.true = max(self.true, self.run_ends) + SECOND
            self.look()
        self._require_fates()

    def _step(self):
        draw = self.random.random()
        if self.offset and draw > 0.95:  # a wrong clock is corrected soon
            self._change_clock()
            self.look()
        elif self.is_calm or draw < 0.85:
            self._wait_for_due()
            self.look()
        elif draw < 0.88:
            self.counts["sleeps"] += 1
            self.true += self.random.random() * self.random.choice([HOUR, DAY, 10 * DAY])
            self.look()
        elif draw < 0.89:
            self._change_clock()
            self.look()
        elif draw < 0.91 + 0.05 * bool(self.obstacle):
            self.obstacle = "" if self.obstacle else OBSTACLE
        elif draw < 0.97 and not self.is_running:
            self.run_ends = self.true + self._draw_duration()  # the operator starts it
        else:
            self.true += self.random.random() * HOUR
            self.look()

    def _wait_for_due(self):
        """Sleep until soon after the next due time on the clock, as the daemon does."""
        days = next(
            days for days in (1, 8, 400) if self.oracle.between(self.now, self.now + days * DAY)
        )
        start = self.rules.times.find_start(self.oracle.between(self.now, self.now + days * DAY)[0])
        self.true += max(start - self.now, timedelta(0)) + self.random.random() * 300 * SECOND

    def _change_clock(self):
        self.counts["clock changes"] += 1
        if self.offset:
            self.offset = timedelta(0)
            return
        size = self.random.choice([10 * SECOND, HOUR, DAY, 30 * DAY, 400 * DAY])
        self.offset = self.random.uniform(-1, 1) * size

    def look(self):
        self.counts["looks"] += 1
        expected = self._expect_fate()
        self.latest = max(self.latest, self.now)
        try:
            result = start_due_run(self.rules, encode_schedule(self.every), self.since, self.ports)
        except KilledError:
            return
        if result.error or expected is None:
            return
        due, fate = expected
        actual = "started" if due in self.starts else self.fate.get(due)
        if actual != fate:
            raise BrokenPromiseError(f"{due} should have been {fate} at {self.now}, not {actual}")

    def _expect_fate(self):
        """Return what must happen to the last due time, unless earlier events complicate it."""
        if self.written is None or self.written.pending or self.now < self.latest:
            return None
        handled = self.written.handled
        times = [
            due
            for due in self.oracle.between(max(handled, self.now - 40 * DAY), self.now)
            if self.fate.get(due) is None
            and due not in self.starts
            and self.rules.times.find_start(due) <= self.now
        ]
        if not times or handled > self.now:
            return None
        due = times[-1]
        if self.every.missed == "skip" and self.now - self.rules.times.find_start(due) > GRACE:
            return due, "missed"
        if self.obstacle:
            return due, "skipped"
        if self.is_running:
            return (due, "skipped") if self.every.overlap != "queue" else None
        return due, "started"

    def _require_fates(self):
        for due in self.oracle.between(self.since, self.now):
            has_started, fate = due in self.starts, self.fate.get(due)
            if self.rules.times.find_start(due) <= self.now and not has_started and fate is None:
                raise BrokenPromiseError(f"{due} was missed silently")
            if has_started and fate != "started":
                raise BrokenPromiseError(f"{due} was started, but is {fate}")
        if len(set(self.starts)) != len(self.starts):
            raise BrokenPromiseError("a due time was started twice")
