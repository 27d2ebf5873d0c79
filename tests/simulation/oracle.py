"""State the rules that must hold, from complete knowledge of what happened.

The oracle never asks the policy. The host tells it every cause and every effect; it keeps its own
account of them in plain words, and holds the supervisor to the promises made to the people who run
agents. If a fault makes two answers right, such as a clock that was set, it accepts both.
"""

from collections import deque

from rekindle.documents import events
from rekindle.policy.settings.runtime_settings import ProgressSettings

NAME = "trades"
AT_ONCE = 5.0
"""Seconds within which whatever is done at once must have been done."""
CRASHES = {"crash", "hang", "resume-failed"}
OUTSIDE = {"overload", "network"}
PERSON = {"auth", "billing", "misconfigured", "budget", "no-permission"}
RETRIED = {"auth"}
"""After these, a launch is tried again by itself, because a person fixes the cause elsewhere."""
FIRST_RETRY, LAST_RETRY = 30.0, 3600.0
"""The time until then, after the first failure in a row and at most."""
FIRST_PROBE, LAST_PROBE = 900.0, 3600.0
"""The time without a probe, and until the next probe at the latest, after a limit without an end.
"""
UNKNOWN_FAILURES, INSTANT = 5, 180.0
"""Failures at once, in a row, after which a launch is only probed."""
A_NIGHT = 24 * 3600.0
"""Seconds of nothing but failures that a run outlasts, at least."""
TURN_TOKENS = 60_000
"""The most that a turn uses."""
MAY_LINGER = 60.0
"""Seconds that a program which has given its account may take to exit."""
MAY_TAKE = 10.0
"""Seconds that one which was asked to end may take."""
LONGEST_TICK = 4 * 3600.0
"""Seconds between two looks at an agent that works, as `host.py` plays them."""
COMES_UP = 2.0
"""Seconds that a supervisor which is started may take."""


def _is_refused(process, cause):
    return process is not None and process.resumes and cause == "resume-failed"


class Violation(AssertionError):  # noqa: N818 - it is one of a promise, not an error of ours
    """Something happened that must never happen."""


class Oracle:
    def __init__(self, host):
        self._host = host
        runtime = host.scenario.runtime
        self._restart, self._watch, self._limits = runtime.restart, runtime.watch, runtime.limits
        self._bounds = runtime.progress
        self._appended = 0
        """Launches that could append to their file."""
        self._is_new_stretch()
        self._counts_from = 0.0
        self._progressed = False
        """Whether the running process has made progress."""
        self.past = deque(maxlen=40)
        """The last events, to find the reason of a violation."""
        self._desired = ""
        self._safe = self._over = False
        self._retry_due = None
        self._began = {"true": 0.0, "wall": 0.0}
        self._restarted = set()
        """Launches that are ended for a restart."""
        self._call = (False, 0.0)
        """Whether it was in a tool call at the last check, and the time of that check."""
        self._questions = {}
        """Questions to a person that no answer is recorded for."""
        self._stopped = set()
        """Launches that the operator's stop ended, or that began before it."""
        self._pending = {}
        """Launches whose end is not in the log yet."""
        self._fresh = False
        self._spent = self._unsure_spent = self._last_turn = 0
        self._turns = []
        self._stop_by = None
        self._due = self._supervisor_due = None
        self._forget()
        self._new_cycle()
        self._freed_at = 0.0
        self._disk_was_full = False
        self._in_vain = (0, 0.0)
        """How often the watchdog started it without an event in the log, and when it last did."""
        self._clock_set_at = -1.0
        self._cycle = self._cycles = 0
        """The last cycle that ended, and how many of the run have."""

    # Accounts.

    def _forget(self):
        """Reset the failure counters: the operator asked for another start."""
        self._row = self._lost = self._limit_row = 0
        self._crashes = []
        self._instant = self._refused = 0
        self._blurred = False
        self._last = ""
        self._full = 0
        """Windows that filled up since it last ran well."""
        self._ended_at = -1e9
        self._pause = (0.0, 0.0)
        self._reset = None

    def _new_cycle(self):
        self._forget()
        self._session = ""
        """The session to go on with."""
        self._failed_resumes = 0
        self._must_be_fresh = False

    def _is_new_stretch(self):
        """Progress, or the operator's restart: work without progress is counted from here."""
        self._worked, self._idle_tokens, self._unknown_tokens = 0.0, 0, 0
        self._called = 0.0
        """Seconds that it was in tool calls."""
        self._counts_launches_again()
        self._times = self._most_times()

    def _counts_launches_again(self):
        """Launches without progress are counted from here; hours and money may not be."""
        self._idle = 0
        """Launches that ended without progress since the operator last stopped the agent."""
        self._idle_starts = []
        self._idle_ended_at = -1e9
        self._failing_at, self._is_told = None, False
        self._stretch_began = self._host.true
        self._has_handed_off = False

    def _most_times(self):
        """Return how often a bound on work without progress may be used up.

        Twice: the supervisor looks at the folder only when a bound is reached, so that a commit in
        the first minute counts at the end of the first bound. A file to which every launch appends
        counts as work in two looks: three bounds in the first launch, then two in the second.
        """
        return 5 if self._host.scenario.appends and self._appended < 4 else 2

    def progresses(self):
        """The agent makes progress, in truth."""
        self.remember("progress")
        self._progressed = True
        self._worked, self._idle_tokens, self._unknown_tokens = 0.0, 0, 0
        self._called = 0.0
        self._counts_from = self._host.mono
        self._times = self._most_times()

    def _working(self):
        """Seconds of work since the last progress, with those of the process that runs."""
        one = self._host.process
        runs = one is not None and one.mark in self._pending
        began = max(one.born, self._counts_from) if runs else 0.0
        return self._worked + (self._host.mono - began if runs else 0.0)

    def _idle_usd(self):
        return self._idle_tokens * self._host.usd_a_million / 1e6

    def _is_fruitless(self):
        """Return whether a bound on work without progress is reached."""
        bounds = self._bounds
        is_paid = self._host.scenario.billed and self._idle_usd() >= bounds.max_usd
        is_long = self._working() >= bounds.max_hours * 3600 - AT_ONCE
        return is_paid or is_long or self._idle >= bounds.max_launches

    def _require_bounds(self):
        """Spending without progress is bounded, in every mode."""
        bounds, host = self._bounds, self._host
        one = host.process
        if host.scenario.billed:
            # A turn is paid for before the supervisor hears of it; one more may be under way.
            turns = 2 * TURN_TOKENS + self._unsure_spent + self._unknown_tokens
            most = self._times * bounds.max_usd + turns * host.usd_a_million / 1e6
            self.require(self._idle_usd() <= most, "money without progress is not bounded")
        if one is None or not one.alive or one.asked_at is not None or one.finished_at is not None:
            return  # it does not work any more; that it ends in time is another promise
        # A tool call is never ended for want of progress: only `tool_timeout` ends one.
        is_in_call = one.call_since is not None or host.mono - one.excused_at < 2 * AT_ONCE
        # Each bound may be noticed late, by one tick of the simulation.
        most_seconds = self._times * (bounds.max_hours * 3600 + LONGEST_TICK) + AT_ONCE
        # In a terminal not even that: a call lasts until its person ends it, perhaps for days.
        most_seconds += self._called if host.scenario.stays else 0.0
        is_bounded = self._working() <= most_seconds or is_in_call
        self.require(is_bounded, "hours of work without progress are not bounded")

    def _paced(self):
        """Return how long the next launch waits because of missing progress."""
        late = self._idle - self._bounds.paced_after
        return min(FIRST_PROBE * 2.0 ** min(late, 10), LAST_PROBE) if late >= 0 else 0.0

    def remember(self, what):
        self.past.append(f"{self._host.true:14.2f} {what}")

    def require(self, holds, words):
        if not holds:
            raise Violation(f"{words}, {self._host.true:.1f} s after the beginning")

    # Actions of the supervisor.

    def supervisor_began(self, *, by_operator):
        self.remember(f"a supervisor begins{', by the operator' if by_operator else ''}")
        self._stop_by = None
        self._expect()

    def supervisor_ended(self, outcome):
        self.remember(f"the supervisor ends: {outcome}")
        self._due = self._stop_by = self._supervisor_due = None
        if outcome == "killed":
            fresh = [tokens for when, tokens in self._turns if self._host.mono - when < AT_ONCE]
            self._unsure_spent += sum(fresh)
        is_told = {"cycles": self._over, "budget": self._over, "limit": self._over}
        self.require(is_told.get(outcome, True), f"it ended with {outcome}, without an event")
        if outcome == "stopped":
            self.require(
                self._desired == "stopped" or self._host.signals, "a supervisor ended unasked"
            )

    def watchdog_starts(self):
        """The watchdog starts a supervisor."""
        self.remember("the watchdog starts a supervisor")
        self.require(not self._host.is_up, "the watchdog starts a second supervisor")
        self.require(self.is_wanted(), "the watchdog starts against an order")
        host, (times, began) = self._host, self._in_vain
        is_early = host.true - began < self._rest() - 0.01
        self.require(self._clock_set_at >= began or not is_early, "it is tried again too soon")
        self._in_vain = (times + 1, host.true)

    def watchdog_looks(self):
        if self._host.is_up:
            self.came_up()

    def came_up(self):
        self._in_vain = (0, 0.0)

    def _rest(self):
        """Return the pause after a start without effect."""
        times, _ = self._in_vain
        limits = self._restart
        return min(limits.cooldown * 2.0 ** (times - 1), limits.max_cooldown) if times else 0.0

    def is_wanted(self):
        """Return whether the watchdog must keep it running: no order or marker is against it."""
        is_marked = self._host.store.folder(NAME).clean_exit.text == ""
        is_to_run = self._desired == "running" and not self._over
        return is_to_run and not is_marked and not self._host.scenario.stays

    def starts(self, session, *, resumes):
        """A process is about to be started."""
        host = self._host
        self.remember(f"a launch{' that resumes' if resumes else ''}")
        alive = host.process is not None and host.process.alive
        self.require(not alive, "two launches of one agent at once")
        self.require(host.is_up, "a launch without a supervisor")
        self.require(self._desired == "running", "a launch against the operator's word")
        self.require(not host.signals, "a launch after the supervisor was asked to end")
        self.require(not self._safe, "a launch in safe mode")
        self.require(not self._over, "a launch after the end of the run")
        self.require(not self._is_spent(min), "a launch without money left")
        self.require(self._last not in PERSON, f"a launch that only a person can fix: {self._last}")
        self.require(self._last != "clean", "a launch although it was done")
        self.require(not self._is_full_again(), "a launch after two windows that filled up")
        self.require(self._limits.wait or self._last != "limit", "a limit was waited for")
        if not self._blurred:
            self.require(
                self._counted() < (self._restart.max_crashes or 1e9),
                "a launch after too many crashes",
            )
        self._is_not_early()
        self._is_not_fruitless()
        self._is_the_right_session(session, resumes=resumes)
        self._due = None
        self._progressed, self._counts_from = False, host.mono

    def _is_not_fruitless(self):
        host, bounds = self._host, self._bounds
        self.require(self._idle < bounds.max_launches, "a launch after too many without progress")
        self._idle_starts = [when for when in self._idle_starts if host.true - when < 3600]
        self._idle_starts.append(host.true)
        is_sure = host.true - self._clock_set_at > 3600
        if is_sure:
            most = bounds.paced_after + 3
            self.require(len(self._idle_starts) <= most, "too many launches in an hour")
        if self._failing_at is not None and self._clock_set_at < self._failing_at:
            lasted = host.true - self._failing_at
            self.require(
                self._is_told or lasted <= 3600, "retried for an hour, without a notification"
            )

    def _is_not_early(self):
        host = self._host
        if self._reset is not None:
            reset, waited = self._reset
            self.require(
                host.wall >= reset - 1 or host.uptime() >= waited - 1,
                "woken before the reset that was told",
            )
        elif not self._blurred:
            self.require(
                host.true >= self._ended_at + self._pause[0] - 1,
                f"started again {host.true - self._ended_at:.1f} s after {self._last},"
                f" and not after {self._pause[0]:g} s",
            )
            self.require(
                host.true >= self._idle_ended_at + self._paced() - 1
                or self._clock_set_at >= self._idle_ended_at,
                f"launch {self._idle + 1} without progress came too soon",
            )

    def _is_the_right_session(self, session, *, resumes):
        if self._fresh or self._must_be_fresh or not self._session:
            self.require(not resumes, "a fresh session was due")
        else:
            self.require(resumes and session == self._session, "a session was given up")

    def started(self, process):
        self._fresh = False
        self._turns = []
        self._pending[process.mark] = process

    def could_not_start(self, mark):
        self._fresh = False
        self._pending[mark] = None

    def asked(self, process):
        """The supervisor asks the agent to end."""
        self.remember("it is asked to end")
        process.reasons = set(self._reasons(process))
        self.require(process.reasons, "ended without a reason")

    def _reasons(self, process):
        """Return the reasons for which it may be ended, as the exit must be named."""
        host, watch = self._host, self._watch
        if self._desired == "stopped" or host.signals or process.mark in self._restarted:
            yield "interrupted"
        lasted = None if process.call_since is None else host.mono - process.call_since
        # A call that has only just begun may not have been heard of.
        if self._is_spent(max) and (lasted is None or lasted < AT_ONCE):
            yield "interrupted"
        if self._is_fruitless() and (lasted is None or lasted < AT_ONCE):
            yield "interrupted"
        if process.finished_at is not None:
            if host.mono - process.finished_at >= MAY_LINGER:
                yield "clean"
        elif lasted is not None:
            idle = host.mono - max(process.sign_at, process.excused_at)
            is_lost = process.is_call_lost and idle >= max(watch.idle_call, watch.silence)
            if (lasted >= watch.tool_timeout or is_lost) and not process.stopped:
                yield "hang"
        elif not process.stopped and not process.background:
            silent = host.mono - max(process.sign_at, process.excused_at)
            seems_to_work = not host.scenario.tells and process.busy
            if silent >= watch.silence and not seems_to_work:
                yield "hang"

    def killed(self, process):
        late = process.asked_at is not None and self._host.mono - process.asked_at > MAY_TAKE
        self.require(late or self._host.signals > 1, "killed without having been asked to end")

    def swept(self, process):
        is_left = process.supervisor != self._host.supervisor
        self.require(is_left or not process.alive, "swept away while its supervisor followed it")

    def noticed(self, process, *, ended):
        self.remember(f"noticed{', and ended' if ended else ''}")
        silent = self._host.mono - process.sign_at
        lasted = self._host.mono - (process.call_since or self._host.mono)
        self.require(
            silent >= self._watch.silence or lasted >= self._watch.tool_timeout,
            "noticed, although it shows signs of life",
        )
        self.require(process.finished_at is None, "noticed, although it is done")
        self.require(not self._host.scenario.stays, "noticed, although a person sits before it")
        process.noticed = True

    def notified(self, what, words):
        self.remember(f"notified: {what}")
        self.require(words, "a notification without words")
        self._is_told = True

    # Events of the log.

    def logged(self, event, run):  # noqa: C901, PLR0912 - one for each kind
        self._in_vain = (0, 0.0)
        match event:
            case events.DesiredSet():
                self._said(event)
            case events.QuestionAsked():
                self._asked(event)
            case events.QuestionAnswered():
                self._answered(event)
            case events.RestartRequested():
                self._forget()
                self._is_new_stretch()
                self._safe = self._over = False
                self._restarted = set(self._pending)
                self._expect()
            case events.RunStarted():
                self.require(not self._safe, "a new run out of safe mode")
                self._forget()
                self._is_new_stretch()
                self._spent = self._unsure_spent = self._cycles = 0
                self._began = {"true": self._host.true, "wall": self._host.wall}
            case events.RunEnded():
                self._run_ended(event)
            case events.SafeModeEntered():
                self._safe_mode(event)
            case events.CycleStarted():
                self.require(event.cycle == self._cycle + 1, "a cycle was repeated or left out")
                self._new_cycle()
            case events.CycleEnded():
                self._cycle_ended(event)
            case events.LaunchStarted():
                if self._last == "handoff" and not event.resumes:
                    self.require(not event.recovery, "a handoff alone is not a recovery")
                self._pending[event.launch] = None
                self._restarted = set()
            case events.LaunchEnded():
                self._launch_ended(event, run)
            case _:
                pass

    def _cycle_ended(self, event):
        self.remember(f"cycle {event.cycle} ends")
        self.require(self._last == "clean", "a cycle ended that was not done")
        self.require(event.cycle == self._cycle + 1, "a cycle ended twice")
        self._cycle, self._cycles = event.cycle, self._cycles + 1
        self.require(self._cycles <= self._host.scenario.cycles, "a cycle too much")
        if self._cycles < self._host.scenario.cycles:
            self._new_cycle()
            self._expect()

    def _said(self, event):
        self.remember(f"the operator says: {event.desired}")
        self._desired = event.desired
        if event.desired == "stopped":
            self._is_to_stop()
            return
        self._stop_by = None  # the later word counts
        if self._over:
            self._forget()  # the end of the run is overruled
        self._over = False
        self._expect()

    def _is_to_stop(self):
        """Pauses and pacing count launches from here: the operator ends those before."""
        self._stop_by = self._host.true + 3 * MAY_TAKE
        self._due = None
        self._row = self._lost = self._instant = 0
        if self._last != "limit":
            self._pause = (0.0, 0.0)
        self._counts_launches_again()
        self._stopped = set(self._pending)

    def _asked(self, event):
        self.remember(f"a question is asked: {event.about}")
        self._questions[event.question] = event
        is_retried = event.about in RETRIED
        self.require((event.default == "retry") == is_retried, "another default than was promised")
        if is_retried:
            least = min(FIRST_RETRY * 2.0 ** min(self._refused - 1, 10), LAST_RETRY)
            pause = (event.deadline - event.ts).total_seconds()
            self.require(least <= pause <= LAST_RETRY, f"tried again after {pause:g} s")

    def _answered(self, event):
        """No person answers here: a deadline does, which only starts an agent without a login."""
        self.remember(f"a question is answered: {event.effect}")
        question = self._questions.pop(event.question, None)
        self.require(question is not None, "a question was answered twice, or was never asked")
        self.require(event.origin == "deadline", "a person has answered who does not exist")
        is_late = question.deadline is not None and self._host.clock() >= question.deadline
        self.require(is_late, "a default applies before its deadline")
        effects = {"restart"} if question.about in RETRIED else {"stop", "note"}
        self.require(event.effect in effects, f"a deadline has the effect {event.effect}")
        if event.effect == "stop":
            self._desired = "stopped"
            self._is_to_stop()
        elif event.effect == "restart":
            refused = self._refused
            self._forget()
            self._refused = refused
            self._safe = False
            self._expect()

    def _run_ended(self, event):
        self.remember(f"the run ends: {event.why}")
        self.require(not self._safe, "safe mode was left without a person")
        self.require(self._desired == "running", "a stopped run was ended")
        reason = {
            "cycles": self._last == "clean" and self._cycles == self._host.scenario.cycles,
            "budget": self._is_spent(max) and (self._last != "clean" or self._host.scenario.stays),
            "limit": self._last == "limit" and not self._limits.wait,
        }
        self.require(reason[event.why], f"the run ended with {event.why}")
        if event.why == "budget" and self._host.cap.tokens and not self._unsure_spent:
            over = self._spent - self._host.cap.tokens
            self.require(over < max(self._last_turn, 1), "more than one turn too much")
        self._over, self._due = True, None

    def _safe_mode(self, event):
        self.remember(f"safe mode: {event.why}")
        self.require(not self._safe, "safe mode was entered twice")
        self.require(self._desired == "running", "safe mode of an agent that is not to run")
        crashes = len(self._crashes) if self._blurred else self._counted(late=1)
        reason = (
            self._last in PERSON
            or crashes >= (self._restart.max_crashes or 1e9)
            or (event.why == "no-progress" and self._is_fruitless())
            or self._is_full_again()
            or (self._last == "clean" and self._host.scenario.stays)
        )
        self.require(reason, f"safe mode without a reason: {event.why} after {self._last}")
        if event.why == "no-progress":
            self._no_night_is_lost()
        self._safe, self._due = True, None

    def _no_night_is_lost(self):
        """Failures alone, in whatever words, pause a run only after all of its waits.

        As shipped, these are a night and a day. Two things make it earlier: a clock that was set,
        by which a wait may seem to be over, and handoffs, which `policy.handoff.window_rule` bounds
        as well.
        """
        bounds = self._bounds
        waits = range(bounds.max_launches - bounds.paced_after)
        least = sum(min(FIRST_PROBE * 2.0 ** min(late, 10), LAST_PROBE) for late in waits)
        self.require(
            bounds != ProgressSettings() or least >= A_NIGHT, "the waits do not last a night"
        )
        is_worked = self._working() >= self._bounds.max_hours * 3600 - AT_ONCE
        is_paid = self._host.scenario.billed and self._idle_usd() >= self._bounds.max_usd
        is_early = self._has_handed_off or self._clock_set_at >= self._stretch_began
        if not (is_worked or is_paid or is_early):
            lasted = self._host.true - self._stretch_began
            is_kept = lasted >= least - len(waits)
            self.require(is_kept, f"a night is lost after {lasted / 3600:.1f} hours")

    def _is_full_again(self):
        return self._last == "context-full" and self._full > 1

    def _counted(self, late=0.0):
        """Crashes within the window."""
        since = self._host.true - self._restart.window - late
        return sum(when >= since for when in self._crashes)

    def _launch_ended(self, event, run):
        process = self._pending.pop(event.launch)
        cause = self._cause(event, process)
        self.remember(f"a launch ended: {event.exit} ({cause})")
        self.require(event.exit == cause, f"{cause} was taken for {event.exit}")
        self._keep_session(event, process, cause)
        self._check_spending(run)
        if event.launch in self._restarted:
            self._restarted.discard(event.launch)
            if cause == "clean" and not self._host.scenario.stays:
                self._last = cause  # finished work stays finished, whatever was requested meanwhile
            self._appended += process is not None  # its appended lines are still known
            self._expect()
            return  # it was ended for a restart, which resets the counters
        is_stopped = event.launch in self._stopped
        self._stopped.discard(event.launch)
        self._count_progress(event, cause, process, is_stopped=is_stopped)
        seconds = self._seconds(event, process, cause)
        if _is_refused(process, cause):
            # The session is gone: a fresh one starts at once, and it counts as nothing.
            self._last, self._ended_at = cause, self._host.true
            self._pause, self._reset = (0.0, 0.0), None
        else:
            self._count(cause, seconds, event.resets_at, is_stopped=is_stopped)
        self._expect()

    def _count_progress(self, event, cause, process, *, is_stopped):
        """Keep count of the launches since the last one that made progress."""
        began = max(process.born, self._counts_from) if process is not None else self._host.mono
        # A file that grows in every launch does not show that from the first two launches on.
        self._appended += process is not None
        is_new = self._host.scenario.appends and process is not None and self._appended <= 2
        if self._progressed or is_new:
            self._progressed = False
            called = self._called
            self._is_new_stretch()
            # One that was done has only waited for its person since.
            is_done = process is not None and process.finished_at is not None
            until = process.finished_at if is_done else self._host.mono
            self._worked, self._called = max(0.0, until - began), called
            # A killed supervisor has not recorded when the progress was: all of its launch counts.
            self._times += cause == "lost"
            return
        # A lost launch is only known by the wall clock, and not at all without hooks: then only the
        # number of launches is bounded.
        worked = self._host.mono - began
        if cause == "lost":
            is_done = process is not None and process.finished_at is not None
            is_known = self._host.scenario.tells and not is_done
            worked = max(worked, event.seconds) if is_known else event.seconds
        self._worked += worked
        if is_stopped:
            return
        if cause not in RETRIED:
            self._idle += 1
            self._idle_ended_at = self._host.true
        self._has_handed_off |= cause == "handoff"
        if cause in {"clean", "handoff", "context-full"}:
            self._failing_at, self._is_told = None, False
        elif self._failing_at is None:
            self._failing_at = self._host.true

    def _cause(self, event, process):
        """Return the required exit kind of a launch."""
        if process is None:
            # No supervisor started it: it could not, or was killed before.
            return "lost" if event.exit == "lost" else "crash"
        if process.supervisor != self._host.supervisor:
            return "lost"
        if event.exit == "lost" and self._disk_was_full:
            return "lost"  # its end could not be written down
        if process.finished_at is not None:
            return "clean"
        if process.asked_at is not None:
            known = process.reasons
            return event.exit if event.exit in known else " or ".join(known)
        return process.cause or "crash"

    def _seconds(self, event, process, cause):
        if process is None:
            return 0.0
        if cause == "lost":
            worked = (process.beat_at or 0.0) - process.born - self._host.asleep
            if abs(worked - self._restart.healthy_after) < AT_ONCE or self._host.asleep:
                self._blurred = True
            return event.seconds
        return self._host.mono - process.born

    def _keep_session(self, event, process, cause):
        """Which session the next launch has to work on."""
        if process is None:
            # Nothing was started, so no resume has failed.
            self._must_be_fresh = False
            if not event.resumes:
                self._session, self._failed_resumes = "", 0
            return
        if process.resumes:
            failed = not process.opened or cause == "resume-failed"
            if not failed:
                self._failed_resumes = 0
            elif cause in CRASHES:
                self._failed_resumes += 2 if _is_refused(process, cause) else 1
        else:
            self._failed_resumes = 0
        if process.opened:
            self._session = process.session
        elif not process.resumes:
            self._session = ""
        self._must_be_fresh = cause in {"context-full", "handoff"} or self._failed_resumes >= 2

    def _count(self, cause, seconds, told, *, is_stopped):
        """Keep count of what happened, in the words of the promise."""
        host, limits = self._host, self._restart
        if seconds >= limits.healthy_after:
            self._row = self._lost = 0
            self._crashes = []
            self._full = 0
            self._blurred = self._blurred and cause == "lost"
        self._last = cause
        self._refused = self._refused + 1 if cause in RETRIED else 0
        self._full += cause == "context-full"
        self._ended_at, self._pause, self._reset = host.true, (0.0, 0.0), None
        if cause in CRASHES:
            self._crashes.append(host.true)
        self._limit_row = self._limit_row + 1 if cause == "limit" else 0
        if is_stopped and cause != "limit":
            return  # no pause follows, whatever it was: the operator has ended it
        if cause == "lost":
            self._lost += 1
            self._pauses(self._lost - (limits.max_crashes or UNKNOWN_FAILURES))
            return
        is_instant = cause in CRASHES and seconds < INSTANT
        self._instant = self._instant + 1 if is_instant else 0
        self._lost = 0
        if cause in {"crash", "hang", "interrupted"} | OUTSIDE:
            self._row += 1
            self._pauses(self._row - (cause not in OUTSIDE))
            self._probes()
            return
        self._row = 0
        self._probes()
        if cause == "limit":
            self._wait_for_limit(told)

    def _pauses(self, number):
        """The first pause is the cooldown, and each is twice the one before."""
        limits = self._restart
        if number > 0:
            seconds = min(limits.cooldown * 2.0 ** (number - 1), limits.max_cooldown)
            self._pause = (seconds, seconds)

    def _probes(self):
        """Failures at once, for an unknown reason: a probe every 15 to 60 minutes."""
        late = self._instant - UNKNOWN_FAILURES
        if late >= 0 and self._restart.max_crashes is None:
            seconds = min(FIRST_PROBE * 2.0 ** min(late, 10), LAST_PROBE)
            self._pause = (seconds, seconds)

    def _wait_for_limit(self, told):
        host = self._host
        if told is not None and told > host.wall:
            # One that is always just ahead is paused for, too.
            self._pauses(self._limit_row - 1)
            left = max(told - host.wall, self._pause[0])
            self._reset = (host.wall + left, host.uptime() + left)
        elif told is None or self._limit_row > 1:
            self._pause = (FIRST_PROBE, LAST_PROBE)

    def _check_spending(self, run):
        found = run.spent.tokens if run.spent.seq > run.began else 0
        # For a CLI without reports, its input and output are estimated in addition.
        more = 0 if self._host.scenario.tells else 1_000
        self.require(
            self._spent - self._unsure_spent <= found <= self._spent + more,
            f"spent {self._spent}, and {found} is known of it",
        )
        # A killed supervisor could not write this down any more, so the log does not have it.
        self._unknown_tokens += max(0, self._spent - found)
        self._spent, self._unsure_spent = found, 0

    def spends(self, tokens):
        """A turn is made."""
        is_told = [when for when, _ in self._turns if self._host.mono - when > AT_ONCE]
        if is_told and not self._host.store.full:
            known = self._spent - self._unsure_spent
            self.require(known < self._cap_of_tokens(), "a turn more than was paid for")
        self._spent += tokens
        self._idle_tokens += tokens
        self._require_bounds()
        self._last_turn = tokens
        self._turns.append((self._host.mono, tokens))

    def _cap_of_tokens(self):
        cap = self._host.cap
        return cap.tokens if cap is not None and cap.tokens is not None else float("inf")

    def is_paid_out(self):
        return self._spent >= self._cap_of_tokens()

    def _is_spent(self, which):
        """Return whether the budget is spent; `which`: min, for certain, or max, possibly."""
        host = self._host
        if self.is_paid_out():
            return True
        hours = host.cap.hours if host.cap is not None else None
        passed = which(host.true - self._began["true"], host.wall - self._began["wall"])
        return hours is not None and passed >= hours * 3600

    # Actions of the operator and the host.

    def fresh_asked(self):
        self._fresh = True

    def was_suspended(self):
        """Nothing could be done meanwhile: what is due is due a moment later."""
        if self._stop_by is not None:
            self._stop_by = max(self._stop_by, self._host.true + 3 * MAY_TAKE)
        self._supervisor_due = None
        self._expect()

    def clock_was_set(self):
        self._blurred = True
        self._clock_set_at = self._host.true
        self._supervisor_due = None
        self._expect()

    def disk_is_full(self):
        self._disk_was_full = True
        self._due = self._stop_by = None

    def disk_is_free(self):
        self._unsure_spent = self._spent
        self._freed_at = self._host.mono
        self._expect(3 * MAY_TAKE)

    # Deadlines.

    def _expect(self, more=0.0):
        """Return the time by which the agent must be back."""
        host = self._host
        busy = host.process is not None and host.process.alive and host.process.asked_at is None
        if not host.is_up or self._desired != "running" or self._safe or self._over or busy:
            self._due = None
            return
        left = max(0.0, self._ended_at + self._pause[1] - host.true)
        left = max(left, self._idle_ended_at + self._paced() - host.true)
        if self._blurred or self._clock_set_at >= self._idle_ended_at:
            left = max(self._pause[1], self._restart.max_cooldown, self._paced())
        if self._reset is not None:
            reset, _ = self._reset
            left = max(0.0, reset - host.wall, self._paced()) + 1
        ending = 2 * MAY_TAKE if host.process is not None and host.process.alive else 0.0
        self._due = host.true + left + more + ending + AT_ONCE

    def _count_call(self):
        """Count the time in tool calls since the last look."""
        one, (was_in_call, looked_at) = self._host.process, self._call
        self._called += self._host.mono - looked_at if was_in_call else 0.0
        is_in_call = one is not None and one.alive and one.call_since is not None
        self._call = (is_in_call, self._host.mono)

    def look(self):
        host = self._host
        self._look_for_supervisor()
        self._count_call()
        self._require_bounds()
        if host.store.full:
            return
        if self._due is not None and host.is_up and not host.signals:
            self.require(host.true <= self._due, f"it is not back after {self._last or 'nothing'}")
        if self._stop_by is not None and host.is_up:
            self.require(host.true <= self._stop_by, "it runs on, although it is to stop")
        self._look_for_retry()
        process = host.process
        if process is not None and process.alive and host.is_up:
            self._look_at(process)

    def _look_for_retry(self):
        """After a new login, the agent works again without a command once the pause is over."""
        host, asked = self._host, next(reversed(self._questions.values()), None)
        waits = self._safe and self._desired == "running" and host.is_up and not host.signals
        is_due = asked is not None and asked.about in RETRIED and host.clock() >= asked.deadline
        if not (waits and is_due):
            self._retry_due = None
        elif self._retry_due is None:
            self._retry_due = host.true + AT_ONCE
        else:
            self.require(host.true <= self._retry_due, "it is not tried again")

    def _look_for_supervisor(self):
        """There is one, from the first moment on at which the watchdog can look."""
        host = self._host
        is_missed = not host.is_up and self.is_wanted() and not host.store.full
        if not is_missed or host.watching is None:
            self._supervisor_due = None
        elif self._supervisor_due is None:
            _, began = self._in_vain
            more = self._rest() if self._clock_set_at > began else 0.0
            rested = max(host.true, began + self._rest()) + more
            self._supervisor_due = rested + self._watch.every + COMES_UP
        else:
            self.require(host.true <= self._supervisor_due, "no supervisor is started")

    def _look_at(self, process):
        """Check that a hang is ended in time, and that a false one is reported in time."""
        host, watch = self._host, self._watch
        if process.asked_at is not None:
            self.require(host.mono - process.asked_at <= 2 * MAY_TAKE, "it does not end")
            return
        if process.finished_at is not None and not host.scenario.stays:
            lingers = host.mono - process.finished_at
            self.require(lingers <= MAY_LINGER + 20 + AT_ONCE, "it is done, and lingers on")
            return
        # The time counts from its last turn, or from the end of its open call.
        if self._turns and host.mono - max(self._turns[-1][0], process.excused_at) > 2 * AT_ONCE:
            works_on = self.is_paid_out() and process.call_since is None
            self.require(not works_on, "it works on without money")
        if process.call_since is not None and not process.stopped and not host.scenario.stays:
            lasted = host.mono - process.call_since
            self.require(
                lasted <= watch.tool_timeout + 2 * process.step + 15, "its tool call still runs"
            )
        is_lost = process.is_call_lost
        patience = max(watch.silence, watch.idle_call) if is_lost else watch.silence
        late = host.mono - patience - 2 * process.step - 15
        # Hooks that reported while the disk was full are heard of when it is free again.
        if host.scenario.stays:
            return  # a person sits before it, and may well be thinking
        lives = process.chatters and not process.stopped
        if lives or process.sign_at > late or self._freed_at > late:
            return
        in_call = process.call_since is not None and not is_lost
        may_stay = process.stopped or in_call or process.background
        may_stay = may_stay or (process.busy and not host.scenario.tells)
        self.require(may_stay or process.excused_at > late, "it hangs, and is not ended")
        self.require(not may_stay or process.noticed, "no notification says that it is silent")
