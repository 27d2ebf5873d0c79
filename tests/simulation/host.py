"""A simulated host: its clocks, its processes, its faults, and the person who operates it.

The supervisor on it is the real one, and so is its watchdog. If the supervisor would sleep, or wait
for a line of its agent, the time jumps to the next event; the events are drawn from a seed. A
killed supervisor is an exception which no flow may catch. The oracle is told of everything, with
its true cause, and checks every step.

A working agent prints something every moment. Those lines are not played one by one: only the last
one before each event is, because the others would change nothing.
"""

import heapq
import random
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
from oracle import NAME, Oracle

from doubles import NoBackground, Unbraked
from rekindle.documents import events
from rekindle.documents.events import WorkSigns
from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    Capabilities,
    FinalReport,
    LaunchExit,
    ProcessVitals,
    ProgramCommand,
    SessionOpened,
    SweptProcesses,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.manifest import ModelPrice, Persona
from rekindle.documents.manifest_keys import Budget
from rekindle.errors import AgentError, ProgramMissingError, StoreError, SupervisedError
from rekindle.flows.supervision.supervisor import Supervisor
from rekindle.flows.supervision.watchdog import (
    Watchdog,
    WatchPorts,
)
from rekindle.flows.supervisor_ports import (
    AgentSpec,
    HangReport,
    LaunchReport,
    SafeModeReport,
    SupervisorPorts,
    WaitReport,
)
from rekindle.policy.settings.runtime_settings import (
    RuntimeSettings,
    Settings,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.policy.supervision.list_prices import PriceList
from rekindle.testing.memory_store import MemoryStore

BASE = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY, YEAR = 3600.0, 86_400.0, 365.25 * 86_400
USD_A_MILLION = 40.0
"""Price of a million tokens."""


class Killed(BaseException):
    """The supervisor was killed: nothing of it runs any more, not even an `except`."""


class Over(BaseException):
    """The simulation is over."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The agent of the host, and its faults."""

    mix: dict[str, float]
    """The weights of the faults."""
    gap: float = 22 * HOUR
    """The mean time between two faults."""
    runtime: RuntimeSettings = RuntimeSettings()
    """The manifest, to which the oracle holds the supervisor."""
    given: RuntimeSettings | None = None
    """The settings that the supervisor gets instead, to see whether it uses them at all."""
    budget: Budget | None = None
    stays: bool = False
    tells: bool = True
    cycles: int = 1
    billed: bool | None = None
    """The billing that its CLI shows."""
    commits_every: float = 0.0
    """Mean time between two commits of an agent that works; 0: only those of the mix."""
    appends: bool = False
    """Every launch appends to the same file."""


class NoSecrets:
    """Nothing here is secret, and looking for secrets takes time."""

    def text(self, text):
        return text

    def event(self, event):
        return event


class Store(MemoryStore):
    """The store on this host's disk, which may be full; its user may be killed at any write."""

    def __init__(self, host):
        super().__init__(clock=host.clock, redaction=NoSecrets(), keep=60)
        self._host = host
        self.full = False

    def commit(self, agent, stamped, *, folded=0):
        if self.full:
            raise StoreError("ops.jsonl", "No space left on device")
        self._host.point("before an append")
        super().commit(agent, stamped, folded=folded)
        for one in stamped:
            self._host.oracle.logged(one, self.read(agent).committed.run)
            self._host.heard(one)
        self._host.point("after an append")


class Process:
    """An agent's process, and the truth about it."""

    def __init__(self, host, mark, session, *, resumes):
        self.host, self.mark, self.session, self.resumes = host, mark, session, resumes
        self.supervisor = host.supervisor
        self.pid = 4711
        self.alive, self.code, self.errors = True, 0, ""
        self.cause = ""
        """Why it ended, in truth; empty: it was made to."""
        self.lines = deque()
        self.born = self.sign_at = host.mono
        self.beat_at = None
        self.opened = False
        self.chatters = self.stopped = self.hung = False
        self.call_since = self.finished_at = None
        self.background = False
        self.waited_for = host.rng.random() < 0.5
        """It is a shell that waits for the agent proper, or has some other idle child."""
        self.is_call_lost = False
        """It hung within a tool call, whose return it never reports."""
        self.heeds = host.rng.random() < 0.8
        self.asked_at = None
        self.noticed = False
        self.excused_at = host.mono
        """When there was last a reason for its silence."""
        self._cpu = self._tools_cpu = self._counted = 0.0
        self.busy = False
        self.restless = 0.0
        silence = host.scenario.runtime.watch.silence
        self.step = 15.0 if host.rng.random() < 0.1 else silence / 2
        """The interval of checks during silence: short, or just short enough."""

    def sign(self, *seen):
        """Show something."""
        self.sign_at, self.noticed = self.host.mono, False
        self.lines.append(seen)

    def chatter(self):
        """The last of all that it said up to now, and a hook's report of it."""
        if self.alive and self.chatters and not self.stopped:
            self.sign()
            self.beat()

    def beat(self):
        if not self.host.store.full:
            self.beat_at = self.host.true
            self.host.store.report(
                NAME, events.Heartbeat(ts=self.host.clock(), session=self.session)
            )

    def now_is(self, **what):
        """Switch the process to another activity."""
        self.count()
        for name, value in what.items():
            setattr(self, name, value)

    def count(self):
        """Count the processor time up to now."""
        passed, self._counted = self.host.mono - self._counted, self.host.mono
        if not self.stopped:
            self._cpu += passed * (0.3 if self.chatters or self.busy else 0.0)
            self._tools_cpu += passed * (0.5 if self.background else 0.0)

    def vitals(self):
        self.count()
        in_call = self.call_since is not None and not self.is_call_lost
        tools = int(self.background or in_call or (self.waited_for and self.hung))
        return ProcessVitals(
            stopped=self.stopped,
            cpu_seconds=self._cpu,
            tools=tools,
            tools_cpu_seconds=self._tools_cpu,
        )

    def ends(self, cause, code=1, words=""):
        """It ends by itself."""
        if self.alive:
            self.now_is(alive=False, cause=cause, code=code, errors=words or cause)

    def ask_to_end(self):
        self.host.oracle.asked(self)
        self.asked_at = self.host.mono
        if self.heeds and not self.stopped:
            self.host.at(self.host.rng.uniform(0.1, 6), self.dies)

    def kill(self):
        self.host.oracle.killed(self)
        self.dies(-9)

    def dies(self, code=143):
        if self.alive:
            self.now_is(alive=False, code=code)

    def follow(self, every):
        host = self.host
        while True:
            while self.lines:
                yield self.lines.popleft()
            if not self.alive:
                return
            if host.advance(host.true + self._next_tick(every)):
                self.restless = host.mono + 2.5
            if not self.lines:
                yield None

    def _next_tick(self, every):
        """Nothing is missed where nothing can be seen: long steps, and short ones after a fault."""
        if self.asked_at is not None:
            return 1.0
        if self.host.mono < self.restless:
            return 0.25 if self.restless - self.host.mono > 2.4 else 2.3
        if self.finished_at is not None:
            # In a terminal nothing but its person ends it after that.
            lingers = self.host.scenario.stays and self.host.mono - self.finished_at > 300
            return 4 * HOUR if lingers else 20.0
        return 4 * HOUR if self.chatters and not self.stopped else max(every, self.step)


class Harness(Unbraked):
    """A dialect without words: what a line means is the line itself."""

    NAME = "simulated"
    PASSED_PREFIXES = BLOCKED_VARIABLES = ()
    INSTALL = "it is always there"
    HOOK_FILES = None

    def __init__(self, host):
        self._host = host
        self.CAN = Capabilities(hooks=host.scenario.tells)

    def command(self, start):
        # A path is not looked up on the real PATH.
        return ProgramCommand(("/agent", start.session, "resumes" if start.resumes else ""))

    def read_stream(self, line):
        return line

    def usage(self, tail, windows):
        return None

    def classify(self, ended):
        if ended.finished is not None:
            return LaunchExit("clean")
        if ended.stopped:
            return LaunchExit("interrupted", "stopped")
        kind, _, told = ended.errors.partition(" ")
        if not kind:
            return LaunchExit("crash", f"ended with {ended.code}")
        return LaunchExit(kind, kind, resets_at=int(told) if told else None)


class Host(NoBackground):
    """The machine, and everything that happens on it."""

    def __init__(self, scenario, seed):
        self.scenario, self.rng = scenario, random.Random(seed)
        self.true = 0.0
        """Seconds that have really passed."""
        self.offset = 0.0
        """The error of the wall clock."""
        self.asleep = 0.0
        self.booted = 0.0
        self.boots = 1
        self.faults = self.launches = self.supervisor = 0
        self.is_up = self.kept = False
        self.wake = None
        self.signals, self.hand = 0, False
        self.armed = ""
        self.acting = False
        self.process = None
        self.outage = ("", 0.0)
        self.limit = (0.0, None)
        self.unknown_until = 0.0
        """The time until which every launch fails at once with an unknown sentence."""
        self.commits = 0
        self.fruitless_until = 0.0
        """The time until which it works without progress."""
        self.missing_until = 0.0
        self.ruined = ""
        """The exit kinds that only a person can fix."""
        self.next_ends = deque()
        """The exits of the next launches."""
        self.broken = set()
        """Sessions that cannot be brought back."""
        self.idle_until = 0.0
        self.waits_until = None
        self._queue, self._number = [], 0
        self.watching = None
        """The watchdog; None: it is gone as well."""
        self._looks_at = None
        """When the watchdog looks next; None: a supervisor lives."""
        self._look_gap = 0.0
        self.cap = scenario.budget
        self.usd_a_million = USD_A_MILLION
        self.oracle = Oracle(self)
        self.store = Store(self)
        self.store.create(NAME)
        self.harness = Harness(self)

    # Time.

    @property
    def mono(self):
        """Return seconds on the monotonic clock, which stops while the host sleeps."""
        return self.true - self.asleep

    def clock(self):
        return BASE + timedelta(seconds=self.true + self.offset)

    @property
    def wall(self):
        return BASE.timestamp() + self.true + self.offset

    def boot(self):
        return f"boot-{self.boots}"

    def uptime(self):
        return self.true - self.booted

    def at(self, delay, do):
        """Have something happen later."""
        self._number += 1
        heapq.heappush(self._queue, (self.true + delay, self._number, do))

    def advance(self, until):
        """Let time pass, up to the next event; return whether the agent may notice it at once."""
        happens = self._queue[0][0] if self._queue else until
        if happens > until:
            self.true = until
            self.oracle.look()
            return False
        when, _, do = heapq.heappop(self._queue)
        self.true = max(self.true, when)
        if do == self._look_if_due:
            do()
            return False
        if self.process is not None:
            self.process.chatter()
        do()
        if self._looks_at is not None:
            self._look_soon()
        self.oracle.look()
        return do not in {self._strikes, self._commits_again}

    def rest(self, seconds):
        """Return the rest of a wait at once if its end is known."""
        self.advance(max(self.true + max(seconds, 0.01), self.idle_until))

    def point(self, name):
        """A place at which a supervisor may be killed."""
        if self.armed == name and self.is_up and not self.acting:
            self.armed = ""
            raise Killed

    # Processes.

    def start(self, argv, *, prompt, environment, folder):
        self.point("before a start")
        _, session, resumes = argv
        self.launches += 1
        self.oracle.starts(session, resumes=bool(resumes))
        if self.true < self.missing_until:
            self.oracle.could_not_start(environment[LAUNCH_VARIABLE])
            raise ProgramMissingError("agent", "No such file or directory")
        self.process = Process(self, environment[LAUNCH_VARIABLE], session, resumes=bool(resumes))
        self.oracle.started(self.process)
        self._play(self.process)
        self.point("after a start")
        return self.process

    def end_launch_processes(self, mark, *, boot, uptime, patience, recorded=(), program=""):
        self.point("before a sweep")
        one = self.process
        if one is None or one.mark != mark or boot != self.boot() or not one.alive:
            return SweptProcesses()
        self.oracle.swept(one)
        if not one.heeds:
            self.true += patience
        one.dies(-9)
        return SweptProcesses(1)

    def is_alive(self, process):
        return False

    def vitals(self, pid, mark, *, boot, uptime):
        return self.process.vitals() if self.process.alive else None

    def _play(self, process):
        """Play the fate of a process: the host knows it before anything else does."""
        rng = self.rng
        kind, until = self.outage
        reset, told = self.limit
        soon = rng.uniform(2, 20)

        def later(cause, after=soon, words=""):
            self.at(after, lambda: process.ends(cause, words=words))

        if process.resumes and process.session in self.broken:
            later("resume-failed", 2)
            return
        self.at(1, lambda: self._opens(process))
        if self.ruined:
            later(self.ruined)
        elif self.true < reset:
            later("limit", words="limit" if told is None else f"limit {told}")
        elif self.true < until:
            later(kind)
        elif self.true < self.unknown_until:
            later("crash")
        elif self.next_ends:
            later(self.next_ends.popleft())
        else:
            self.at(1.5, lambda: process.alive and process.now_is(chatters=True))

    def _opens(self, process):
        if not process.alive or process.stopped:
            return
        process.opened = True
        process.sign(SessionOpened(process.session, billed=self.scenario.billed))
        if not self.store.full:
            process.beat_at = self.true
            self.store.report(
                NAME,
                events.SessionStarted(
                    ts=self.clock(),
                    session=process.session,
                    harness="simulated",
                    launch=process.mark,
                    source="startup",
                ),
            )

    # Supervisors.

    def supervise(self, *, kept):
        self.supervisor += 1
        self.is_up, self.signals, self.hand, self.kept = True, 0, False, kept
        self.idle_until, self.waits_until = 0.0, None
        self.oracle.supervisor_began(by_operator=not kept)
        try:
            result = Supervisor(self.agent(), self.world(), by_watchdog=kept).run()
            outcome = result.why if result.outcome else "unwanted"
        except Killed:
            outcome = "killed"
        except (StoreError, AgentError) as error:
            outcome = type(error).__name__
        self.is_up, self.armed = False, ""
        self.oracle.supervisor_ended(outcome)
        if self.scenario.stays or self.store.folder(NAME).clean_exit.text == "":
            self.comes_back()
        if self.process is not None and self.process.alive and self.rng.random() < 0.6:
            self.at(self.rng.uniform(0, 5), self.process.dies)  # told to, by its parent's death
        self._look_soon()

    def agent(self):
        return AgentSpec(
            name=NAME,
            harness=self.harness,
            folder="/work",
            task="Ship it.",
            rules="",
            persona=Persona(),
            environment={},
            hook=(),
            budget=self.cap,
            prices=PriceList({"default": ModelPrice(USD_A_MILLION, USD_A_MILLION)}),
            stays=self.scenario.stays,
            cycles=self.scenario.cycles,
        )

    def world(self):
        return SupervisorPorts(
            store=self.store,
            processes=self,
            settings=Settings(runtime=self.scenario.given or self.scenario.runtime),
            clock=self.clock,
            elapsed=lambda: self.mono,
            rest=self.rest,
            interrupted=lambda: self.signals,
            by_hand=lambda: self.hand,
            enter_pressed=lambda: False,
            tell=self.tell,
            notify=self.oracle.notified,
            head=lambda: str(self.commits),
            signs=self.signs,
        )

    def signs(self, head, since):
        commits = self.commits - int(head or self.commits)
        return WorkSigns(commits, ("notes.txt",) if self.scenario.appends else ())

    def tell(self, report):
        if isinstance(report, WaitReport | SafeModeReport):
            self.oracle.came_up()
        match report:
            case WaitReport():
                self.waits_until = report.until
                self._wait_is_known()
            case SafeModeReport():
                self.idle_until, self.waits_until = float("inf"), None
            case LaunchReport():
                self.idle_until, self.waits_until = 0.0, None
            case HangReport():
                self.oracle.noticed(self.process, ended=report.ended)
                if self.process.hung and not report.ended:
                    self.at(self.rng.expovariate(1 / HOUR), self.restart)
            case _:
                pass

    def _wait_is_known(self):
        left = (self.waits_until - self.clock()).total_seconds()
        known = self.true + left
        self.idle_until = min(self.idle_until, known) if self.idle_until > self.true else known

    # The watchdog.

    def watchdog_begins(self):
        """The host's service starts it, and it looks at once."""
        staying = [NAME] if self.scenario.stays else []
        around = WatchPorts(
            start=self._watchdog_starts,
            last_words=lambda agent: "",
            notify=lambda agent, words: (),
            clock=self.clock,
            limits=(self.scenario.given or self.scenario.runtime).restart,
        )
        self.watching = Watchdog(self.store, around, staying)
        self.watchdog_looks()

    def watchdog_dies(self):
        """When it is started again is up to the host's service."""
        if self.watching is not None:
            self.watching = None
            self.at(self.rng.uniform(1, 60), self.watchdog_begins)

    def watchdog_looks(self):
        if self.watching is not None:
            self.oracle.watchdog_looks()
            self.watching.look([NAME])
        if not self.is_up:
            self._look_again()

    def _look_soon(self):
        """Have the watchdog look at its next time: something has happened."""
        self._look_gap = 0.0
        self._look_again()

    def _look_again(self):
        """Have it look at its next time, or later.

        Not while a supervisor lives, where a look would change nothing. If the agent is not to run,
        only something that happens can change what the watchdog finds: the gaps between looks
        double, up to two hours, until then.
        """
        every = self.scenario.runtime.watch.every
        self._look_gap = 0.0 if self.oracle.is_wanted() else min(2 * self._look_gap or 1.0, 120.0)
        delay = (self.true // every + max(1.0, self._look_gap)) * every - self.true
        at = self.true + delay
        if self._looks_at is None or not self.true <= self._looks_at <= at:
            self._looks_at = at
            self.at(delay, self._look_if_due)

    def _look_if_due(self):
        if self._looks_at is not None and self.true >= self._looks_at:
            self._looks_at = None
            self.watchdog_looks()
            self.oracle.look()

    def _watchdog_starts(self, agent):
        """Start a supervisor after a moment, in which the operator may have changed the order."""
        self.oracle.watchdog_starts()
        self.at(self.rng.uniform(0.1, 1.9), lambda: self.starts(kept=True))
        self._look_soon()
        return ""

    def starts(self, *, kept):
        """Start a supervisor; if another one runs, the new one must find that out by itself."""
        if not self.is_up:
            self.wake = kept if self.wake is None else self.wake and kept
            return
        before = self.store.read(NAME).committed.seq
        try:
            Supervisor(self.agent(), self.world(), by_watchdog=kept).run()
        except SupervisedError:
            self.oracle.require(
                self.store.read(NAME).committed.seq == before, "a refused supervisor wrote"
            )
        else:
            self.oracle.require(holds=False, words="two supervisors of one agent")

    def live(self, seconds):
        """Live this many seconds of an agent's life, from the operator's first command."""
        self.watchdog_begins()
        self.at(20, lambda: self.starts(kept=False))
        self.at(self.rng.expovariate(1 / self.scenario.gap), self.fault)
        self.at(seconds, self._is_over)
        if self.cap is not None and self.cap.hours is not None:
            self._strikes()
        if self.scenario.commits_every:
            self._commits_later()
        with suppress(Over):
            while True:
                if self.wake is None:
                    self.advance(self.true + DAY)
                else:
                    kept, self.wake = self.wake, None
                    self.supervise(kept=kept)

    def _is_over(self):
        raise Over

    def _commits_later(self):
        every = self.scenario.commits_every
        self.at(self.rng.uniform(0.4, 1.6) * every, self._commits_again)

    def _commits_again(self):
        if self.true >= self.fruitless_until:
            FAULTS["commit"](self, self.rng)
        self._commits_later()

    def _strikes(self):
        """Return whether a fault strikes; counted hours must not be skipped."""
        self.at(HOUR, self._strikes)

    # The person.

    def says(self, *records, fresh=False):
        """Give an operator's command; a full disk refuses it."""
        if self.store.full:
            return
        if fresh:
            self.store.folder(NAME).request_fresh_session()
            self.oracle.fresh_asked()
        self.acting = True
        self.store.submit(NAME, *records)
        self.acting = False

    def say(self, desired):
        run = self.store.read(NAME).projection.run
        return runs.make_desired_event(run, desired, self.clock())

    def heard(self, event):
        """Have the person come a while after a notification that the agent stopped."""
        match event:
            case events.SafeModeEntered():
                self.at(self.rng.expovariate(1 / HOUR), self.comes)
            case events.RunEnded(why="cycles"):
                self.at(self.rng.expovariate(1 / HOUR), lambda: self.starts(kept=False))
            case events.RunEnded():
                self.at(self.rng.expovariate(1 / HOUR), self.comes)
            case _:
                pass

    def comes(self):
        """Have the person fix what is broken, and give the order to resume."""
        if self.rng.random() < 0.15:
            self.starts(kept=False)  # without having fixed anything
            self.at(self.rng.expovariate(1 / HOUR), self.comes)
            return
        self.ruined = ""
        self.next_ends.clear()
        self.restart()

    def restart(self, *, fresh=False):
        self.store.folder(NAME).clean_exit.unlink(missing_ok=True)
        asked = events.RestartRequested(ts=self.clock(), fresh=fresh)
        self.says(asked, self.say("running"), fresh=fresh)
        if self.scenario.stays:
            self.comes_back()

    def comes_back(self):
        """Have a person start an agent after a while if no watchdog does."""
        self.at(self.rng.expovariate(1 / HOUR), lambda: self.is_up or self.starts(kept=False))

    # Faults.

    def fault(self):
        """The next fault, and when the one after it comes."""
        mix = self.scenario.mix
        (name,) = self.rng.choices(list(mix), list(mix.values()))
        self.faults += 1
        self.at(self.rng.expovariate(1 / self.scenario.gap), self.fault)
        self.oracle.remember(name)
        FAULTS[name](self, self.rng)


def _works(host):
    """The process, if it is in a state in which something can befall it."""
    one = host.process
    usable = one is not None and one.alive and one.chatters and not one.stopped and host.is_up
    return one if usable and one.asked_at is None and one.finished_at is None else None


def _ends(cause):
    def befalls(host, rng):
        if one := _works(host):
            one.ends(cause)

    return befalls


def _ends_often(cause, most, least=0):
    """It ends, and so do the next ones."""

    def befalls(host, rng):
        if one := _works(host):
            host.next_ends.extend([cause] * rng.randint(least, most))
            one.ends(cause)

    return befalls


def _window_fills_up(host, rng):
    """Fill the window of this launch, and of the next or the one after that."""
    if one := _works(host):
        others = rng.choice([[], [], ["crash"], ["overload"], ["interrupted"]])
        host.next_ends.extend([*others, "context-full"] if rng.random() < 0.6 else others)
        one.ends("context-full")


def _hangs(*, busy):
    def befalls(host, rng):
        if one := _works(host):
            # A program that tells nothing and is busy cannot be told from one that works.
            one.now_is(chatters=False, hung=True, busy=busy)

    return befalls


def _hangs_in_a_call(host, rng):
    """Its return is never reported, and no later turn shows that it is over."""
    if one := _works(host):
        one.now_is(chatters=False, hung=True, is_call_lost=True, call_since=host.mono)
        one.sign(ToolCallStarted("Bash", f"call-{host.faults}"))


def _is_stopped(host, rng):
    if one := _works(host):
        one.now_is(stopped=True)
        host.at(rng.uniform(10, 3 * HOUR), lambda: _continues(host, one))


def _continues(host, one):
    if one.alive:
        one.now_is(stopped=False, chatters=False, excused_at=host.mono)
        host.at(host.rng.uniform(1, 40), lambda: _chatters_again(one))


def _chatters_again(one):
    if one.alive and not one.hung:
        one.now_is(chatters=True)
        one.chatter()


def _calls(host, rng):
    """A tool call that takes up to three hours, in which nothing is shown.

    If it only waits, as for another host, it must return before its time is over.
    """
    one = _works(host)
    if one is None:
        return
    call = f"call-{host.faults}"
    works = rng.random() < 0.5
    one.now_is(chatters=False, call_since=host.mono, background=works)
    # Told with the turn that it is of, or without.
    is_of_turn = rng.random() < 0.5
    one.sign(ToolCallStarted("Bash", call), *([_used(host)] if is_of_turn else []))
    is_lost = is_of_turn and rng.random() < 0.5
    longest = 3 * HOUR if works else min(3 * HOUR, 0.9 * host.scenario.runtime.watch.idle_call)
    host.at(rng.uniform(60, longest), lambda: _returns(one, call, is_lost=is_lost))


def _returns(one, call, *, is_lost):
    """Report the model's next turn, which also ends a call whose own end was not reported.

    Not if the budget is spent: between the unreported end and the model's next turn, the supervisor
    has no chance to prevent that turn.
    """
    if one.alive:
        is_lost = is_lost and not one.host.oracle.is_paid_out()
        one.now_is(call_since=None, background=False, chatters=True, excused_at=one.host.mono)
        one.sign(_used(one.host) if is_lost else ToolCallFinished(call))


def _works_in_background(host, rng):
    """Silent, outside of any tool call, while something that it has started works."""
    if one := _works(host):
        one.now_is(chatters=False, background=True)
        host.at(rng.uniform(60, 2 * HOUR), lambda: _background_ends(host, one))


def _background_ends(host, one):
    if one.alive:
        one.now_is(background=False, excused_at=host.mono)
        host.at(host.rng.uniform(1, 40), lambda: _chatters_again(one))


def _finishes(*, exits):
    def befalls(host, rng):
        if one := _works(host):
            one.sign(FinalReport(one.session, ok=True))
            one.now_is(chatters=False, finished_at=host.mono)
            if exits:
                host.at(rng.uniform(0.1, 20), lambda: one.ends("clean", 0))

    return befalls


def _turn(host, rng):
    """A turn of the model, which costs."""
    if one := _works(host):
        one.sign(_used(host))


def _used(host):
    tokens = host.rng.randint(1_000, 60_000)
    host.oracle.spends(tokens)
    usage = WindowUsage(tokens - 500, None, "reported", "model", written=500)
    return UsageReport(usage, turn=f"turn-{host.true}")


def _last_turn(host, rng):
    """A turn, and then it is done."""
    _turn(host, rng)
    _finishes(exits=True)(host, rng)


def _commits(host, rng):
    """It makes progress."""
    if _works(host):
        host.commits += 1
        host.oracle.progresses()


def _leads_nowhere(host, rng):
    """It works for hours or days, and there is no progress."""
    host.fruitless_until = host.true + rng.uniform(HOUR, 5 * DAY)


def _unknown_sentence(host, rng):
    """Fail every launch for hours with the sentence of a limit that the policy does not know."""
    host.unknown_until = host.true + rng.uniform(60, 10 * HOUR)
    if one := _works(host):
        one.ends("crash")


def _session_breaks(host, rng):
    if one := _works(host):
        host.broken.add(one.session)
        one.ends("crash")


def _outage(kind):
    def befalls(host, rng):
        host.outage = (kind, host.true + rng.expovariate(1 / HOUR))
        if one := _works(host):
            host.at(rng.uniform(1, 60), lambda: one.ends(kind))

    return befalls


def _limit(told):
    def befalls(host, rng):
        one = _works(host)
        if one is None:
            return
        reset = host.true + rng.uniform(60, 6 * HOUR)
        known = {
            "known": int(host.wall + reset - host.true) + 1,
            "unknown": None,
            "early": int(host.wall + (reset - host.true) * rng.uniform(0, 0.9)),
            "past": int(host.wall - rng.uniform(10, 5 * HOUR)),
        }[told]
        host.limit = (reset, known)
        one.ends("limit", words="limit" if known is None else f"limit {known}")

    return befalls


def _needs_a_person(cause):
    def befalls(host, rng):
        host.ruined = cause
        if one := _works(host):
            one.ends(cause)

    return befalls


def _suspended(host, rng):
    seconds = rng.uniform(60, 20 * HOUR)
    if host.process is not None:
        host.process.count()
    host.true += seconds
    host.asleep += seconds
    host.oracle.was_suspended()


def _clock_jumps(host, rng):
    host.offset += rng.choice([-1, 1]) * 10 ** rng.uniform(0, 5.5)
    if host.waits_until is not None:
        host._wait_is_known()
    host.oracle.clock_was_set()


def _disk_fills(host, rng):
    host.store.full = True
    host.oracle.disk_is_full()
    host.at(rng.uniform(1, HOUR), lambda: _disk_is_freed(host))


def _disk_is_freed(host):
    host.store.full = False
    host.oracle.disk_is_free()


def _supervisor_is_killed(host, rng):
    """Wherever it is: resting, or within a write or a start of its own."""
    place = rng.choice(["now", *POINTS])
    if not host.is_up:
        return
    if place == "now":
        raise Killed
    host.armed = place
    if one := _works(host):
        one.ends("crash")  # so that it has something to do


def _everything_is_killed(host, rng):
    host.watchdog_dies()
    if host.process is not None:
        host.process.dies(-9)
    if host.is_up:
        raise Killed


def _supervisors_are_killed(host, rng):
    """Kill the supervisors repeatedly, as a script or a host without memory does."""

    def again(left):
        if left:
            host.at(rng.uniform(5, 60), lambda: again(left - 1))
        if host.is_up:
            raise Killed

    again(rng.randint(3, 14))


def _reboots(host, rng):
    host.watchdog_dies()
    if host.process is not None:
        host.process.dies(-9)
    host.true += rng.uniform(5, 600)
    host.booted, host.boots = host.true, host.boots + 1
    host.oracle.was_suspended()
    if host.is_up:
        raise Killed


def _is_terminated(host, rng):
    """TERM to the supervisor, as from a service manager: it says nothing of what is wanted."""
    if host.is_up:
        host.signals += 1


def _ctrl_c(host, rng):
    if host.is_up and not host.kept:
        host.signals, host.hand = host.signals + 1, True
        host.at(rng.expovariate(1 / HOUR), lambda: host.starts(kept=False))


def _is_stopped_by_operator(host, rng):
    host.says(host.say("stopped"))
    host.at(rng.expovariate(1 / HOUR), lambda: host.starts(kept=False))


def _watchdogs_race(host, rng):
    """Start a supervisor from an outdated look, after the operator gave another order."""
    host.watchdog_looks()
    host.starts(kept=True)


def _marks(host, rng):
    """Create a `.clean-exit` by hand, an outdated one, or remove it."""
    host.store.folder(NAME).clean_exit.text = rng.choice(["", "1 done\n", None])
    if rng.random() < 0.5:
        host.at(0, lambda: _supervisor_is_killed(host, rng))
    host.comes_back()


def _program_is_missing(host, rng):
    """It is being updated."""
    host.missing_until = host.true + rng.uniform(5, 60)
    if one := _works(host):
        one.ends("crash")


POINTS = (
    "before an append",
    "after an append",
    "before a start",
    "after a start",
    "before a sweep",
)
FAULTS = {
    "nothing": lambda host, rng: None,
    "crash": _ends("crash"),
    "crashes": _ends_often("crash", 7),
    "idle hang": _hangs(busy=False),
    "busy hang": _hangs(busy=True),
    "hang in a call": _hangs_in_a_call,
    "sigstop": _is_stopped,
    "long call": _calls,
    "background": _works_in_background,
    "clean": _finishes(exits=True),
    "does not exit": _finishes(exits=False),
    "turn": _turn,
    "last turn": _last_turn,
    "commit": _commits,
    "unknown sentence": _unknown_sentence,
    "leads nowhere": _leads_nowhere,
    "broken session": _session_breaks,
    "full window": _window_fills_up,
    "handed off": _ends_often("handoff", 3),
    "an operator interrupts": _ends_often("interrupted", 4),
    "overload": _outage("overload"),
    "network": _outage("network"),
    "limit": _limit("known"),
    "unknown limit": _limit("unknown"),
    "early limit": _limit("early"),
    "past limit": _limit("past"),
    "auth": _needs_a_person("auth"),
    "billing": _needs_a_person("billing"),
    "misconfigured": _needs_a_person("misconfigured"),
    "cli budget": _needs_a_person("budget"),
    "no permission": _needs_a_person("no-permission"),
    "suspend": _suspended,
    "clock": _clock_jumps,
    "full disk": _disk_fills,
    "kill -9": _supervisor_is_killed,
    "kill all": _everything_is_killed,
    "kills": _supervisors_are_killed,
    "reboot": _reboots,
    "term": _is_terminated,
    "ctrl-c": _ctrl_c,
    "stop": _is_stopped_by_operator,
    "run": lambda host, rng: host.starts(kept=False),
    "restart": lambda host, rng: host.restart(),
    "restart --fresh": lambda host, rng: host.restart(fresh=True),
    "race": _watchdogs_race,
    "marker": _marks,
    "missing": _program_is_missing,
}
