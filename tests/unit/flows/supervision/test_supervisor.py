"""A supervisor over its whole life, and over the deaths of others, with a store in memory."""

import itertools
from datetime import timedelta
from typing import get_args

import pytest

from doubles import NoBackground, Unbraked
from rekindle.documents import events
from rekindle.documents.launches.launch_types import (
    AssistantText,
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
from rekindle.documents.manifest import Persona
from rekindle.documents.manifest_keys import Budget
from rekindle.errors import ProgramMissingError, StoreError, SupervisedError, TamperedLogError
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.supervision.supervisor import Supervisor
from rekindle.flows.supervision.supervisor_steps import SupervisorSteps
from rekindle.flows.supervisor_ports import (
    REPORT_KINDS,
    AgentSpec,
    SafeModeReport,
    SkippedWaitReport,
    SupervisorPorts,
    SupervisorReport,
    WaitReport,
)
from rekindle.formats.validation import Duration
from rekindle.policy.quota.pacing import QuotaHold
from rekindle.policy.settings.runtime_settings import (
    LimitSettings,
    RestartSettings,
    RuntimeSettings,
    Settings,
    WatchSettings,
)
from rekindle.policy.supervision import run_moves as policy
from rekindle.policy.supervision import watchdog_table
from rekindle.policy.supervision.watchdog_table import WatchFacts
from rekindle.testing.memory_store import MemoryStore

IDLE = ProcessVitals(stopped=False, cpu_seconds=0.0, tools=0, tools_cpu_seconds=0.0)


class Killed(BaseException):
    """The supervisor is gone; nothing of it may run any more."""


class Life(Unbraked, NoBackground):
    """An agent whose launches are told beforehand; it is harness, processes and child at once."""

    NAME, INSTALL, PASSED_PREFIXES, BLOCKED_VARIABLES = "fake", "", (), ()
    CAN = Capabilities()
    pid, code, errors = 7, 0, ""

    def __init__(self, clock):
        self.clock, self.store = clock, MemoryStore(clock=clock)
        self.seconds = 0.0
        self.plays, self.starts, self.resting = [], [], []
        self.told, self.notified, self.notes, self.asked = [], [], [], []
        self.signals, self.hand = 0, False
        self.runtime = RuntimeSettings()
        self.vital = IDLE
        self.facts = {}
        self.signs = lambda head, since: None
        self.spends = self.billed = None
        self.around = {}

    # Events.

    def passes(self, seconds):
        self.seconds += seconds
        self.clock.forward(seconds=seconds)

    def rest(self, seconds):
        self.passes(seconds)
        if self.resting and self.seconds >= self.resting[0][0]:
            self.resting.pop(0)[1]()

    def after(self, seconds, do):
        """While it rests."""
        self.resting.append((self.seconds + seconds, do))

    def says(self, desired):
        run = self.store.read("a").projection.run
        self.store.submit("a", policy.make_desired_event(run, desired, self.clock()))

    def stops(self):
        self.says("stopped")

    def restarts(self):
        self.store.submit("a", events.RestartRequested(ts=self.clock()))

    def presses(self, *, hand):
        self.signals, self.hand = 1, hand

    def is_killed(self):
        raise Killed

    # The supervisor's view.

    def command(self, start):
        self.starts.append(start)
        return ProgramCommand(("fake",))

    def start(self, argv, **how):
        self.play = self.plays.pop(0)
        if isinstance(self.play[0], Exception):
            raise self.play[0]
        self.asked = []
        return self

    def follow(self, every):
        yield (SessionOpened(self.starts[-1].session, billed=self.billed),)
        for one in self.play[1:]:
            if callable(one):
                one()
                yield None
            elif isinstance(one, int | float):
                for _ in range(int(one // 5)):
                    self.passes(5)
                    yield None
                    if self.asked:
                        return
            else:
                yield (one,)
            if self.asked:
                return
        if self.spends is not None:
            yield (FinalReport(self.starts[-1].session, ok=False, usd=self.spends),)

    def ask_to_end(self):
        self.asked.append("ask")

    def kill(self):
        self.asked.append("kill")

    def read_stream(self, line):
        return line

    def usage(self, tail, windows):
        return None

    def classify(self, ended):
        if ended.stopped:
            return LaunchExit("interrupted", "stopped")
        found = self.play[0]
        return found if isinstance(found, LaunchExit) else LaunchExit(found, found)

    def is_resumed(self):
        return False

    def notify(self, what, words):
        self.notified.append(what)
        self.notes.append(words)

    def boot(self):
        return "boot"

    def uptime(self):
        return self.seconds

    def vitals(self, pid, mark, **at):
        return self.vital

    def end_launch_processes(self, mark, **how):
        return SweptProcesses()

    def run(self, **how):
        agent = AgentSpec(
            name="a",
            harness=self,
            folder="/",
            task="Ship it.",
            rules="",
            persona=Persona(),
            environment={},
            hook=(),
            **self.facts,
        )
        world = SupervisorPorts(
            store=self.store,
            processes=self,
            settings=Settings(runtime=self.runtime),
            clock=self.clock,
            elapsed=lambda: self.seconds,
            rest=self.rest,
            interrupted=lambda: self.signals,
            by_hand=lambda: self.hand,
            enter_pressed=self.is_resumed,
            tell=self.told.append,
            notify=self.notify,
            signs=self.signs,
            **self.around,
        )
        self.signals = 0
        self.outcome = Supervisor(agent, world, **how).run()
        return self.outcome.why if self.outcome.outcome else "unwanted"

    # Results.

    @property
    def known(self):
        return self.store.read("a").committed.run

    def logged(self, kind):
        return [one for one in self.store.log["a"] if isinstance(one, kind)]

    @property
    def resumed(self):
        return [one.resumes for one in self.starts]

    @property
    def clean_exit(self):
        return self.store.folder("a").clean_exit.text


def test_every_report_has_a_name_of_its_own():
    """The names are what programs read: a renamed class changes none."""
    assert set(REPORT_KINDS) == set(get_args(SupervisorReport))
    assert len(set(REPORT_KINDS.values())) == len(REPORT_KINDS)


@pytest.fixture
def life(clock):
    return Life(clock)


def test_crashes_are_paused_after_until_safe_mode(life):
    """At once, then 10, 20, 40 s; the fifth ends in safe mode, told once, and nothing runs."""
    life.runtime = RuntimeSettings(restart=RestartSettings(max_crashes=5))
    life.plays = [("crash",)] * 5
    life.after(1000, life.is_killed)
    with pytest.raises(Killed):
        life.run()
    ends = [one.ts for one in life.logged(events.LaunchEnded)]
    waits = [(b - a).total_seconds() for a, b in itertools.pairwise(ends)]
    assert waits == [0, 10, 20, 40]
    assert len(life.logged(events.SafeModeEntered)) == 1
    assert life.notified == ["crash"]
    assert isinstance(life.told[-1], SafeModeReport)


def test_safe_mode_outlives_supervisors_and_is_left_by_a_restart(life):
    """Killed, kept by a watchdog, run by hand: it stays, and is entered and told once."""
    life.plays = [("billing",)]
    for how in ({}, {"by_watchdog": True}, {"by_watchdog": False}):
        life.after(60, life.is_killed)
        with pytest.raises(Killed):
            life.run(**how)
        assert life.known.is_safe
    assert len(life.logged(events.SafeModeEntered)) == 1
    assert (len(life.starts), life.notified) == (1, ["billing"])
    life.plays = [("clean",)]
    life.after(60, life.restarts)
    assert life.run(by_watchdog=True) == "cycles"
    assert life.resumed == [False, True]


def test_safe_mode_for_changed_settings_reads_them_only_when_they_change(life):
    """An hour of safe mode: `stat` tells whether the manifest is another one."""
    manifest = {"stamp": 1, "changes": "budget: added", "read": 0}

    def unaccepted():
        manifest["read"] += 1
        return manifest["changes"]

    life.around = {"unaccepted": unaccepted, "settings_stamp": lambda: manifest["stamp"]}
    life.plays = [("clean",)]
    life.after(3600, lambda: manifest.update(stamp=2))
    life.after(3700, lambda: manifest.update(stamp=3, changes=""))
    assert life.run(by_watchdog=False) == "cycles"
    assert manifest["read"] <= 6
    assert life.seconds >= 3700


@pytest.mark.parametrize("done", [True, False])
def test_a_watchdog_s_supervisor_does_not_run_against_an_order(life, done):
    """After the end or a stop it starts nothing and writes nothing."""
    if done:
        life.plays = [("clean",)]
        life.run()
    else:
        life.says("stopped")
    before = life.store.read("a").committed.seq
    assert life.run(by_watchdog=True) == "unwanted"
    assert life.store.read("a").committed.seq == before


def test_a_clean_exit_is_marked_and_the_mark_taken_away(life):
    """The marker exists as long as the agent must not be started again."""
    gone = []
    life.plays = [("clean", lambda: gone.append(life.clean_exit))] * 2
    life.run()
    assert life.clean_exit.endswith(" cycles\n")
    first = int(life.clean_exit.split()[0])
    life.run()
    assert gone == [None, None]
    assert int(life.clean_exit.split()[0]) > first


def test_ctrl_c_says_stopped_and_a_signal_from_elsewhere_does_not(life):
    life.plays = [("crash", lambda: life.presses(hand=False))]
    assert life.run() == "stopped"
    assert (life.known.desired, life.clean_exit) == ("running", None)
    life.plays = [("crash", lambda: life.presses(hand=True))]
    assert life.run(by_watchdog=True) == "stopped"
    assert life.known.desired == "stopped"
    assert life.clean_exit.endswith(" stopped\n")
    assert life.run(by_watchdog=True) == "unwanted"


@pytest.mark.parametrize(
    "refusal",
    [
        StoreError("/a", "No space left on device", errno=28, hint="free some space"),
        TamperedLogError("a", "changed"),
    ],
)
def test_a_stop_that_no_log_takes_ends_the_supervisor_and_is_noted_outside(
    life, monkeypatch, refusal
):
    """Neither a full disk nor a foreign log keeps it from exiting."""
    noted = []
    monkeypatch.setattr(life.store, "note_stop", lambda agent, command: noted.append(command))

    def stops():
        life.presses(hand=True)
        monkeypatch.setattr(life.store, "writer", refuse)

    def refuse(*_args, **_options):
        raise refusal

    life.plays = [("crash", stops, 60)]
    assert life.run() == "stopped"
    assert [one.desired for one in noted] == ["stopped"]


@pytest.mark.parametrize(
    ("by_hand", "words"),
    [
        (True, "stopped by the operator"),
        (False, "ended because its supervisor was stopped"),
    ],
)
def test_the_cause_of_a_session_s_end_is_recorded(life, by_hand, words):
    """A host that shuts down gives no order about the agent."""
    life.plays = [("crash", lambda: life.presses(hand=by_hand), 60)]
    assert life.run() == "stopped"
    (ended,) = life.logged(events.LaunchEnded)
    assert ended.exit == "interrupted"
    assert ended.words.startswith(words)


def test_a_word_that_came_with_the_signal_is_heard_before_it(life):
    """A host of a fleet says it so: the log is read only now and then, the signal at once."""

    def stops():
        life.says("stopped")
        life.presses(hand=False)

    life.plays = [("crash", stops, 60)]
    assert life.run() == "stopped"
    (ended,) = life.logged(events.LaunchEnded)
    assert ended.words == "stopped by the operator"


def test_a_stop_from_elsewhere_ends_the_agent_and_the_supervisor(life):
    life.plays = [("crash", lambda: life.says("stopped"), 60)]
    assert life.run() == "stopped"
    assert life.asked == ["ask"]
    assert not life.known.is_over
    life.plays = [("clean",)]
    assert life.run() == "cycles"
    assert life.resumed == [False, True]


def test_a_fresh_session_is_asked_for_once(life):
    """The marker is consumed by the launch that heeds it."""
    life.plays = [("crash",), ("crash",), ("clean",)]
    life.plays[0] = ("crash", life.store.folder("a").request_fresh_session)
    life.run()
    assert life.resumed == [False, False, True]
    assert not life.store.folder("a").fresh.exists()


def test_a_supervisor_that_takes_over_continues_the_wait(life):
    """The agent is not woken before the reset, and the wait is logged and reported once."""
    reset = int(life.clock().timestamp()) + 7200
    life.plays = [(LaunchExit("limit", resets_at=reset),), ("clean",)]
    life.after(600, life.is_killed)
    with pytest.raises(Killed):
        life.run()
    assert life.run(by_watchdog=True) == "cycles"
    assert life.logged(events.LaunchStarted)[-1].ts.timestamp() >= reset
    assert life.clock().timestamp() < reset + 5
    assert len(life.logged(events.WaitStarted)) == 1
    assert life.notified == ["limit", "cycles"]
    assert [type(one) for one in life.told].count(WaitReport) == 2


def test_a_wait_that_the_operator_stopped_is_reported_and_not_resumed(life):
    """A limit is waited for: the program would be refused again."""
    life.plays = [("crash",), ("crash",), ("clean",)]
    life.after(3, lambda: life.presses(hand=True))
    assert life.run() == "stopped"
    [wait], life.signals = life.logged(events.WaitStarted), 0
    assert life.run() == "cycles"
    assert (wait.until - life.logged(events.LaunchStarted)[-1].ts).total_seconds() > 5
    [skipped] = [one for one in life.told if isinstance(one, SkippedWaitReport)]
    assert skipped == SkippedWaitReport("crash", wait.until)
    reset = int(life.clock().timestamp()) + 7200
    life.plays = [(LaunchExit("limit", resets_at=reset),), ("clean",)]
    life.after(600, lambda: life.presses(hand=True))
    assert life.run() == "stopped"
    life.signals = 0
    assert life.run() == "cycles"
    assert life.logged(events.LaunchStarted)[-1].ts.timestamp() >= reset
    assert [type(one) for one in life.told].count(SkippedWaitReport) == 1


@pytest.mark.parametrize("seconds", [-86_400, 86_400])
def test_a_wait_ends_whichever_way_the_clock_is_set(life, seconds):
    """Set back, it ends after the planned time by the monotonic clock."""
    life.plays = [(LaunchExit("limit"),), ("clean",)]
    life.after(60, lambda: life.clock.forward(seconds=seconds))
    assert life.run() == "cycles"
    assert life.seconds <= 901


def test_a_limit_without_a_wait_ends_the_run_and_the_next_one_continues(life):
    life.runtime = RuntimeSettings(limits=LimitSettings(wait=False))
    life.plays = [("limit",), ("clean",)]
    assert life.run() == "limit"
    assert life.run(by_watchdog=True) == "unwanted"
    assert life.run() == "cycles"
    assert life.resumed == [False, True]


def used(tokens):
    return UsageReport(WindowUsage(tokens, None, "reported", "model"))


def test_spending_outlives_the_supervisor_and_ends_the_run(life):
    """It overshoots by at most one turn; a finished run resumes when the budget is raised."""
    life.facts = {"budget": Budget(tokens=100)}
    life.plays = [("crash", used(60), 10, life.is_killed)]
    with pytest.raises(Killed):
        life.run()
    life.plays = [("crash", used(50), 10, used(50), 10)]
    assert life.run(by_watchdog=True) == "budget"
    assert life.known.run_spending().tokens == 110
    assert life.notified == ["budget"]
    assert life.run(by_watchdog=True) == "unwanted"
    life.facts = {"budget": Budget(tokens=200)}
    life.plays = [("crash", 10, life.is_killed), ("clean",)]
    with pytest.raises(Killed):
        life.run()
    assert (
        life.run(by_watchdog=True) == "cycles"
    )  # it is kept again, after the operator has said so
    assert life.known.run_spending().tokens == 110


def test_a_restart_of_a_run_that_is_over_begins_a_new_one(life):
    """This holds if a watchdog starts the supervisor: otherwise its budget would still be spent."""
    life.facts = {"budget": Budget(tokens=100)}
    life.plays = [("crash", used(150), 10), ("clean",)]
    assert life.run() == "budget"
    life.restarts()
    assert life.run(by_watchdog=True) == "cycles"
    assert len(life.logged(events.RunStarted)) == 2
    assert life.known.run_spending().tokens == 0


def test_spending_is_noted_turn_by_turn_and_where_it_grew(life):
    """A turn that is reported in many pieces is not written each time."""

    def piece(turn, tokens):
        return UsageReport(WindowUsage(tokens, None, "reported", "m"), turn)

    pieces = [one for tokens in range(10_000, 10_050) for one in (piece("one", tokens), 5)]
    life.plays = [("clean", *pieces, piece("two", 10_000), 5, piece("two", 15_000), 5)]
    assert life.run() == "cycles"
    assert [one.tokens for one in life.logged(events.SpendRecorded)] == [10_000, 20_049, 25_049]
    assert life.logged(events.LaunchEnded)[-1].run_tokens == 25_049


def test_a_missing_program_does_not_count_as_a_failed_resume(life):
    """The CLI is being updated: when it is back, the same session resumes."""
    missing = ProgramMissingError("fake", "No such file or directory")
    life.plays = [("crash", 5), *[(missing,)] * 3, ("clean",)]
    assert life.run() == "cycles"
    assert life.resumed == [False, True, True, True, True]


def test_a_command_during_the_start_of_a_supervisor_is_the_later_one(life):
    """The starter has logged its command; one of the supervisor would overrule a later one."""
    life.store.create("a")
    life.says("running")
    life.says("stopped")
    assert life.run(is_recorded=True) == "unwanted"
    assert life.known.desired == "stopped"
    life.says("running")
    life.plays = [("clean",)]
    assert life.run(is_recorded=True) == "cycles"
    assert len(life.logged(events.DesiredSet)) == 3


def test_a_budget_is_raised_while_the_agent_runs(life):
    """The session that is running continues, up to the new cap."""
    life.facts = {"budget": Budget(tokens=100)}
    asked = []

    def raise_cap():
        life.store.submit("a", events.BudgetRaised(ts=life.clock(), tokens=200))

    def look():
        asked.append(list(life.asked))

    life.plays = [("crash", used(60), 60, raise_cap, 60, used(90), 60, look, used(50), 60)]
    assert life.run() == "budget"
    assert (asked, life.asked) == ([[]], ["ask"])
    assert life.known.raised_caps() == {"tokens": 200}


def test_a_budget_is_not_kept_to_within_a_tool_call(life):
    life.facts = {"budget": Budget(tokens=100)}
    asked = []

    def look():
        asked.extend(life.asked or ["still calling"])

    shown = (ToolCallStarted("Bash", "c"), used(150), 60, look, ToolCallFinished("c"))
    life.plays = [("crash", *shown, 10)]
    assert life.run() == "budget"
    assert (asked, life.asked) == (["still calling"], ["ask"])


def test_a_call_whose_end_was_lost_is_over_when_the_model_continues(life):
    """Neither the budget nor a hang waits for it any more; calls of one turn belong together."""
    turn = UsageReport(WindowUsage(400, None, "reported", "m", 100), "one")
    again = UsageReport(WindowUsage(400, None, "reported", "m", 100), "two")
    life.facts["budget"] = Budget(tokens=1_000)
    life.plays = [
        (
            "crash",
            ToolCallStarted("Bash", "c1"),
            turn,
            ToolCallStarted("Bash", "c2"),
            turn,
            60,
            again,
            60,
        )
    ]
    assert life.run() == "budget"
    life.facts.clear()
    life.runtime = RuntimeSettings(watch=WatchSettings(silence=Duration(60)))
    life.plays = [("crash", ToolCallStarted("Bash", "c1"), turn, again, 300), ("clean",)]
    life.restarts()
    assert life.run() == "cycles"
    assert "hang" in [one.exit for one in life.logged(events.LaunchEnded)]


def test_a_hang_is_ended_in_its_time_and_a_long_call_is_not(life):
    life.runtime = RuntimeSettings(watch=WatchSettings(silence=Duration(120)))
    life.plays = [
        ("crash", 600),
        ("clean", ToolCallStarted("Bash", "c"), 3500, ToolCallFinished("c")),
    ]
    assert life.run() == "cycles"
    first, second = life.logged(events.LaunchEnded)
    assert (first.exit, second.exit) == ("hang", "clean")
    assert 120 <= first.seconds <= 140
    assert life.notified == ["no sign of life", "no sign of life", "cycles"]
    assert [one.ended for one in life.logged(events.HangDetected)] == [True, False]


def test_an_interval_beyond_its_bounds_does_not_switch_hang_detection_off(life):
    """An agent can write the setting: the supervisor's interval has the watchdog's bounds."""
    ages = Duration(10**9)
    life.runtime = RuntimeSettings(
        watch=WatchSettings(every=ages, silence=ages, tool_timeout=Duration(600))
    )
    life.plays = [("crash", ToolCallStarted("Bash", "c"), 3500), ("clean",)]
    assert life.run() == "cycles"
    first = life.logged(events.LaunchEnded)[0]
    assert (first.exit, 600 <= first.seconds <= 905) == ("hang", True)


def test_a_call_that_never_returns_excuses_silence_only_while_something_works(life):
    """A child that works may take all night; when all are idle, the call's time runs out."""
    seconds = itertools.count()

    def works():
        life.vitals = lambda pid, mark, **at: ProcessVitals(
            stopped=False, cpu_seconds=0.0, tools=1, tools_cpu_seconds=10.0 * next(seconds)
        )

    def idles():
        life.vitals = lambda pid, mark, **at: IDLE

    life.signs = lambda head, since: events.WorkSigns(commits=1)
    lost = ("crash", ToolCallStarted("Bash", "c"), works, 20_000, idles, 20_000)
    life.plays = [
        lost,
        ("clean", ToolCallStarted("Bash", "c"), works, 20_000, ToolCallFinished("c")),
    ]
    assert life.run() == "cycles"
    first, second = life.logged(events.LaunchEnded)
    assert (first.exit, second.exit) == ("hang", "clean")
    assert 23_600 <= first.seconds <= 23_650
    assert second.seconds >= 20_000


def test_turns_of_the_transcript_close_calls_whose_return_was_not_reported():
    """The stream may be a turn ahead of the transcript: a call is closed one turn later."""
    watched = ProcessOutput()
    for turn in range(4):
        watched.take(ToolCallStarted("Bash", f"call {turn}"), float(turn))
        watched.end_earlier_calls()
    assert set(watched.calls) == {"call 2", "call 3"}
    watched.take(ToolCallFinished("call 3"), 5.0)
    assert set(watched.calls) == {"call 2"}


def test_a_stopped_process_is_left_alone_and_has_its_time_after_it_continues(life):
    """Its silence is counted from zero: it had no time to print anything."""

    def stops():
        life.vital = ProcessVitals(stopped=True, cpu_seconds=0.0, tools=0, tools_cpu_seconds=0.0)

    def continues():
        life.vital = IDLE

    life.runtime = RuntimeSettings(watch=WatchSettings(silence=Duration(120)))
    life.plays = [("clean", stops, 3600, continues, 100, AssistantText("here"), 10)]
    assert life.run() == "cycles"
    assert [one.ended for one in life.logged(events.HangDetected)] == [False]
    life.plays = [("crash", stops, 3600, continues, 600), ("clean",)]
    assert life.run() == "cycles"
    assert [one.ended for one in life.logged(events.HangDetected)] == [False, False, True]


def test_a_program_that_is_being_updated_counts_as_a_crash_without_a_person_present(life):
    """A person at the terminal is told at once."""
    missing = (ProgramMissingError("fake", "No such file or directory"),)
    life.plays = [missing]
    with pytest.raises(ProgramMissingError):
        life.run()
    life.runtime = RuntimeSettings(restart=RestartSettings(max_crashes=3))
    life.plays = [missing, ("clean",)]
    assert life.run(by_watchdog=True) == "cycles"


def test_two_watchdogs_start_one_supervisor(life):
    """The second finds the lock taken, also when both had looked before."""
    refused = []

    def second():
        with pytest.raises(SupervisedError):
            life.run(by_watchdog=True)
        refused.append(1)

    life.plays = [("clean", second)]
    assert life.run() == "cycles"
    assert (refused, len(life.starts)) == ([1], 1)


def test_a_restart_in_the_moment_of_the_end_makes_the_marker_void(life):
    """During a notification, a later order of the operator outranks the marker."""
    life.facts = {"budget": Budget(tokens=5)}
    life.plays = [("crash", UsageReport(WindowUsage(9, None, "unknown")), 5)]
    notify = life.notified.append

    def slow(what):
        notify(what)
        life.restarts()

    life.notified = type("Told", (list,), {"append": lambda _self, what: slow(what)})()
    assert life.run() == "budget"
    known = life.store.read("a").projection.run
    facts = WatchFacts(
        supervised=False,
        desired=known.desired,
        is_over=known.is_over,
        marker=life.clean_exit,
        wanted=max(known.began, known.restarted, known.wanted),
    )
    assert watchdog_table.decide_start(facts).starts


def test_a_program_that_is_away_for_a_while_counts_as_a_crash(life):
    """At the first start a person is told at once; later the CLI may be being updated."""
    missing = ProgramMissingError("fake", "No such file or directory")
    life.plays = [(missing,)]
    with pytest.raises(ProgramMissingError):
        life.run()
    life.restarts()
    life.plays = [("crash", 700), (missing,), ("clean",)]
    assert life.run() == "cycles"


def test_a_disk_that_was_full_for_a_while_ends_nothing(life, monkeypatch):
    """A launch that ended without an event is settled, and the work continues."""
    full = []
    real = life.store.writer

    def writer(agent, **how):
        if full:
            raise StoreError("ops.jsonl", "No space left on device")
        return real(agent, **how)

    monkeypatch.setattr(life.store, "writer", writer)
    life.plays = [("crash", lambda: full.append("disk"), 5), ("clean",)]
    life.after(60, full.clear)
    assert life.run() == "cycles"
    assert [one.exit for one in life.logged(events.LaunchEnded)] == ["lost", "clean"]


def test_a_limit_that_is_always_just_ahead_is_reported_once_and_paused_for(life):
    """It says "in 1 s" again and again: the pauses grow, and it is not reported nine times."""

    def limit():
        return (LaunchExit("limit", "limit", resets_at=int(life.clock().timestamp()) + 2),)

    life.plays = [limit() for _ in range(5)] + [("clean",)]
    assert life.run() == "cycles"
    ends = [one.ts for one in life.logged(events.LaunchEnded)]
    waits = [(b - a).total_seconds() for a, b in itertools.pairwise(ends)]
    assert waits[-2:] > [30, 30]
    assert life.notified == ["limit", "cycles"]


def test_a_launch_that_was_killed_before_it_could_report_its_cost(life):
    """The price of its tokens counts, up to its budget: no cap is escaped."""
    life.facts = {"budget": Budget(usd=1.0)}
    life.CAN = Capabilities(reports_money=True)
    life.plays = [("crash", UsageReport(WindowUsage(990_000, None, "unknown"), "one"), 5)] * 9
    assert life.run() == "budget"
    assert len(life.starts) == 1
    assert life.known.spent.usd == 1.0
    life.restarts()
    life.plays = [("crash", UsageReport(WindowUsage(50_000, None, "unknown"), "one"), 5)] * 2
    life.plays += [("clean",)]
    assert life.run() == "cycles"
    assert life.known.spent.usd == pytest.approx(0.3)
    assert [one.usd_left for one in life.starts[1:]] == pytest.approx([1.0, 0.85, 0.7])


def calls(life, session="s"):
    life.store.report(
        "a", events.Heartbeat(ts=life.clock(), session=session, call=str(life.seconds))
    )


def test_reports_of_tool_calls_wait_in_the_inbox_and_count_there(life):
    """On a fleet each fold is a call to the engine; the host itself sees the activity."""
    life.around = {"reports_wait": 300.0, "fold_every": 5.0}
    life.runtime = RuntimeSettings(watch=WatchSettings(silence=Duration(120)))
    seen = []

    def call():
        calls(life)
        seen.append(len(life.logged(events.Heartbeat)))

    life.plays = [("crash", *[call, 30] * 40, 300), ("clean",)]
    assert life.run() == "cycles"
    assert sorted(set(seen)) == [0, 10, 20, 30], "one fold each five minutes"
    first = life.logged(events.LaunchEnded)[0]
    assert (first.exit, 1_290 <= first.seconds <= 1_330) == ("hang", True), first


@pytest.mark.parametrize(
    "needed",
    [
        lambda life: life.store.report("a", events.LoopAdded(ts=life.clock(), id="x", text="X")),
        lambda life: life.store.report("a", events.BudgetRaised(ts=life.clock(), tokens=10**6)),
    ],
)
def test_a_record_that_another_host_needs_takes_the_waiting_ones_along(life, needed):
    life.around = {"reports_wait": 300.0, "fold_every": 5.0}
    seen = []

    def look():
        seen.append(len(life.logged(events.Heartbeat)))

    life.plays = [
        ("clean", lambda: calls(life), 30, look, lambda: needed(life), 10, look),
    ]
    assert life.run() == "cycles"
    assert seen == [0, 1]


def test_spending_towards_a_budget_is_recorded_while_reports_wait(life):
    """Without a budget it waits for the next fold."""
    life.around = {"reports_wait": 10_000.0, "fold_every": 5.0}
    turns = [one for tokens in (1_000, 3_000, 4_000) for one in (used(tokens), 30)]
    life.plays = [("clean", *turns)]
    assert life.run() == "cycles"
    assert life.logged(events.SpendRecorded) == []
    life.facts = {"budget": Budget(tokens=100_000)}
    life.plays = [("clean", *turns)]
    life.restarts()
    assert life.run() == "cycles"
    assert [one.tokens for one in life.logged(events.SpendRecorded)] == [8_000]


def test_a_launch_waits_while_its_quota_is_kept_for_others(life):
    """The wait ends as soon as the hold does, even before the announced time."""
    held = life.clock() + timedelta(hours=5)
    hold = QuotaHold(held, "7 days 81 % used")
    free_at = life.seconds + 600
    noted = []
    life.around = {
        "route_hold": lambda route: hold if life.seconds < free_at else None,
        "note_spending": lambda *spending: noted.append(spending),
    }
    life.plays = [("clean",)]
    life.run()
    [wait] = life.logged(events.WaitStarted)
    assert (wait.why, wait.until, wait.words) == ("quota", held, hold.words)
    assert len(life.starts) == 1
    assert 600 <= life.seconds < 700
    assert {route.harness for route, *_ in noted} == {"fake"}


def test_all_spending_of_a_run_is_noted(life, monkeypatch):
    """That of a short launch at its end, and that of the last cycle's review at the run's end."""
    noted, after_launch = [], []
    life.around = {"note_spending": lambda *spending: noted.append(spending)}
    life.plays, life.spends = [("clean",)], 2.0
    end = SupervisorSteps.end

    def end_with_review(steps, number):
        after_launch.extend(noted)
        steps.log.append(events.ReviewMade(ts=life.clock(), cycle=number, run_usd=2.5))
        return end(steps, number)

    monkeypatch.setattr(SupervisorSteps, "end", end_with_review)
    life.facts = {"cycles": 1}
    life.run()
    totals = [spent.usd for _, _, spent, _ in after_launch]
    assert (totals[0], totals[-1]) == (0.0, 2.0)
    assert noted[-1][2].usd == 2.5
    assert {run for _, run, *_ in noted} == {life.store.read("a").projection.run_name}


def test_a_hold_that_has_passed_does_not_delay_a_launch(life):
    life.around = {"route_hold": lambda route: QuotaHold(life.clock(), "")}
    life.plays = [("clean",)]
    life.run()
    assert life.logged(events.WaitStarted) == []


def test_a_single_try_does_not_wait_for_quota(life):
    life.around = {"route_hold": lambda route: QuotaHold(life.clock() + timedelta(hours=5), "")}
    assert life.run(once=True) == "quota"
    assert life.starts == []


def test_a_person_at_the_terminal_is_not_held(life):
    life.facts = {"stays": True}
    life.around = {"route_hold": lambda route: QuotaHold(life.clock() + timedelta(hours=5), "")}
    life.plays = [("interrupted",)]
    life.after(1, life.stops)
    life.run(once=True)
    assert len(life.starts) == 1


def test_a_stop_ends_the_wait_for_quota(life):
    life.around = {"route_hold": lambda route: QuotaHold(life.clock() + timedelta(hours=5), "")}
    life.after(90, life.stops)
    assert life.run() == "stopped"
    assert life.starts == []


def test_a_restart_starts_one_launch_before_the_quota_is_free(life):
    life.around = {"route_hold": lambda route: QuotaHold(life.clock() + timedelta(hours=5), "")}
    life.facts = {"cycles": 2}
    life.plays = [("clean",), ("clean",)]
    life.after(90, life.restarts)
    life.after(4000, life.stops)
    assert life.run() == "stopped"
    assert len(life.starts) == 1


def test_an_unreadable_quota_does_not_stop_the_agent(life):
    def fail(route):
        raise StoreError("quota", "cannot be read")

    life.around = {"route_hold": fail}
    life.plays = [("clean",)]
    life.run()
    assert len(life.starts) == 1
