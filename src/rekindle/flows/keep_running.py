"""The supervisor: keeps an agent running until its work is done, or a person is needed.

Everything that it knows is in the log: one that takes over from another that was killed decides as
that one would have. What it waits for it would wait for again; what was spent stays spent.
"""

from contextlib import suppress

import msgspec

from rekindle.documents import event as events
from rekindle.documents.launch import Exit
from rekindle.errors import AgentError, FolderLostError, RekindleError, StoreError, TamperedLogError
from rekindle.flows.end_cycle import Ending
from rekindle.flows.steps import Steps
from rekindle.flows.world import Agent, InSafeMode, Trouble, Waits, World
from rekindle.policy import endings, idle, questions, sessions
from rekindle.policy import run as policy
from rekindle.policy.cycle import Fresh, Resume, next_step
from rekindle.policy.endings import ENDINGS, REACTIONS, Outcome, Reason
from rekindle.policy.fold import Projection
from rekindle.policy.restart import Safe, Stop, Wait
from rekindle.policy.row import explain_safe_mode
from rekindle.policy.run import End, HandOn, Move, Run
from rekindle.policy.settings import POLL_SECONDS
from rekindle.policy.supervise import measure_idle


class RunResult(msgspec.Struct, frozen=True):
    """How a run stopped, or paused, for its supervisor."""

    cycle: int
    outcome: Outcome | None
    """None: nothing was started, because the operator does not want it to run."""
    why: Reason = "stopped"
    last: Exit | None = None
    words: str = ""
    safe: str = ""
    """Why it is in safe mode, which it was ended in; empty: it is not."""


class KeepRunning:
    """The supervisor of one agent."""

    def __init__(
        self,
        agent: Agent,
        world: World,
        *,
        once: bool = False,
        kept: bool = False,
        said: bool = False,
        unbounded: bool = False,
        ending: Ending | None = None,
    ) -> None:
        """`once`: end instead of waiting; `kept`: go on with what the operator has said before.

        `said`: the operator has just said it, in the log. Said only here, it would come after
        whatever was said while we were being started, and overrule it. Without an `ending` no
        relay is written at a cycle's end. `unbounded`: it is not paused for want of progress.
        """
        self._world, self._ends = world, ending
        self._once, self._kept, self._said = once, kept, said or kept
        self._unbounded = unbounded
        self._take(agent)
        self._waited_after = 0
        self._has_launched = False
        self._told_limit = self._told_idle = False

    def _take(self, agent: Agent, last: Exit | None = None) -> None:
        self._agent = agent
        self._steps = Steps(agent, self._world, self._ends, last)
        self._cycle = self._steps.cycle

    def run(self) -> RunResult:
        with self._world.store.supervising(self._agent.name):
            known = self._cycle.known()
            # Looked at under the lock: since whoever started us had looked, it may have changed.
            if self._said and (known.run.desired != "running" or known.run.is_over):
                return RunResult(known.cycle, None)
            self._cycle.settle()
            self._begin()
            try:
                return self._keep()
            except FolderLostError as error:
                self._cycle.end_kept()
                self._world.notify("folder lost", str(error))
                raise

    def _keep(self) -> RunResult:
        while True:
            ended = self._step_or_wait()
            if ended is not None:
                return ended
            if self._world.interrupted():
                return self._interrupted()

    def _step_or_wait(self) -> RunResult | None:
        """A disk that is full is waited for, once the agent has run: else nobody would come back.

        What ended meanwhile without a word in the log is settled like what a dead supervisor left.
        """
        try:
            self._world.store.check_supervision(self._agent.name)
            return self._step()
        except TamperedLogError as error:
            return self._hold(error)
        except StoreError as error:
            if self._world.by_hand():
                return self._interrupted()
            if not self._has_launched or self._world.interrupted():
                raise
            self._world.store.check_supervision(self._agent.name)
            self._world.tell(Trouble(str(error)))
            self._world.rest(self._world.settings.runtime.restart.cooldown or POLL_SECONDS)
        with suppress(StoreError):
            self._cycle.settle()
        return None

    def _hold(self, error: TamperedLogError) -> RunResult | None:
        """Stay in safe mode, outside the log, until the operator accepts it or says stop."""
        store, name = self._world.store, self._agent.name
        number = store.read(name).projection.cycle_now
        if self._once:
            return self._result(number, policy.TAMPERED, str(error))
        self._world.tell(InSafeMode(policy.TAMPERED, error.reason))
        self._world.notify("broken", f"{error.reason}\n→ rekindle doctor")
        self._has_come_up()
        while not self._world.interrupted():
            seen = store.read(name)
            if not seen.is_tampered:
                self._cycle.settle()
                return None
            if seen.projection.run.desired == "stopped":
                break
            self._world.rest(POLL_SECONDS)
        # What the operator says is kept outside the log, and counts without it.
        if self._world.by_hand():
            self._record_stop(self._projection().run)
        return self._result(number, "stopped", safe=error.reason)

    def _begin(self) -> None:
        """The operator's word, and a new run where the last one is over."""
        folder, known = self._world.store.folder(self._agent.name), self._cycle.known()
        run = known.run
        folder.remove(folder.clean_exit)
        now = self._world.clock()
        said: list[events.AnyEvent] = []
        if not self._said:
            cycles, unbounded = self._agent.cycles, self._unbounded
            said.append(policy.say(run, "running", now, cycles, unbounded=unbounded))
        if self._once:
            said.append(events.RestartAsked(ts=now, once=True))
        if policy.begins(run, known.attempts.values()):
            said.append(events.RunStarted(ts=now, cycle=known.cycle_ended))
        if said:
            self._cycle.append(*said)

    def _step(self) -> RunResult | None:  # noqa: C901, PLR0911, PLR0912 - one for each kind of move
        """Do the next thing; what is returned is the end."""
        self._cycle.person.apply_defaults()
        known = self._cycle.known()
        number = known.cycle_now
        if known.run.is_over:  # a person accepted the end that the agent reported
            ended = Stop(endings.known(known.run.ended.why), known.run.ended.words)
            return self._over(number, ended, known.seq)
        launches = sessions.of_cycle(known.attempts, number)
        tried = list(launches.values())
        move = self._steps.decide(known)
        if tried and tried[-1].exit != "limit":
            self._told_limit = False
        if isinstance(move, Wait) and move.after == self._waited_after:
            # It was waited for by a clock that nobody sets; the one that says "not yet" was set.
            move = next_step(tried)
        move = self._with_consent(move)
        if isinstance(move, Wait | Fresh | Resume):
            self._tell_of_idle(move, known)
        match move:
            case Stop():
                return self._stop(number, move, known.seq)
            case End():
                then, seq = self._steps.end(number)
                return self._after(number, then, seq) if then else None
            case HandOn():
                halts = self._steps.hand_on(launches)
                return self._halted(number, halts) if halts else None
            case Safe():
                is_safe = known.run.is_safe
                run = known.run if is_safe else self._steps.enter_safe_mode(number, move)
                if self._once:
                    return self._result(number, move.why, move.words)
                self._stay_safe(move, run)
            case Wait(why=idle.PACED) if self._once:
                words = idle.due_in_words(move, tried[-1].words if tried else "")
                return self._result(number, move.why, words)
            case Wait() | Fresh() | Resume() if self._once and self._is_outside(move, tried, known):
                return self._result(number, endings.known(tried[-1].exit))
            case Wait():
                self._wait(move, known.run)
            case Fresh() | Resume():
                self._launch(move, known)
        return None

    def _with_consent(self, move: policy.Move) -> policy.Move:
        """Return the move, or safe mode if it would start what the operator has not accepted.

        The end of a cycle and a handoff start programs of the manifest too.
        """
        starts = isinstance(move, Fresh | Resume | End | HandOn)
        words = self._world.unaccepted() if starts else ""
        return Safe(policy.SETTINGS, words) if words else move

    def _tell_of_idle(self, move: Move, known: Projection) -> None:
        """Notify the operator, once until there is progress, that launches lead nowhere."""
        found = measure_idle(known)
        if found.failing is None:
            self._told_idle = self._told_limit = False
        wait = move if isinstance(move, Wait) else None
        words = idle.notice(found, self._world.clock(), wait)
        waited = known.run.waits(found.last.seq) if found.last else None
        is_limited = waited is not None and waited.why == "limit"
        if words and not self._told_idle and not is_limited:
            self._told_idle = True
            self._world.notify("no progress", words)

    def _is_outside(self, move: Move, tried: list[sessions.Attempt], known: Projection) -> bool:
        """Return whether the last launch ended for a cause that another launch cannot fix."""
        is_probe = isinstance(move, Wait) and move.probe
        is_last = bool(tried) and tried[-1].seq > known.run.since
        return is_last and (is_probe or REACTIONS[endings.reaction(tried[-1].exit)].is_outside)

    def _launch(self, step: Fresh | Resume, known: Projection) -> None:
        if self._world.interrupted():
            return
        is_first, self._has_launched = not self._has_launched, True
        try:
            self._steps.launch(step, known)
        except AgentError:
            # It could not be started at all. Who has just said `run` is told at once; later it
            # counts as a crash: the CLI may be being updated.
            if not self._kept and is_first:
                raise

    def _halted(self, number: int, move: Safe) -> RunResult | None:
        self._steps.enter_safe_mode(number, move)
        return self._result(number, move.why, move.words) if self._once else None

    def _after(self, number: int, then: Stop | Safe, seq: int) -> RunResult | None:
        """What comes after a cycle, where that is not another one."""
        if isinstance(then, Stop):
            return self._over(number, then, seq)
        return self._result(number, then.why, then.words) if self._once else None

    def _stop(self, number: int, move: Stop, seq: int) -> RunResult:
        if move.why != "stopped":  # that run goes on when the operator says so
            now = self._world.clock()
            self._cycle.append(events.RunEnded(ts=now, outcome=move.why, words=move.words))
        return self._over(number, move, seq)

    def _over(self, number: int, move: Stop, seq: int) -> RunResult:
        self._cycle.end_kept()
        self._mark_clean_exit(seq, move.why)
        if endings.outcome(move.why).severity:
            self._cycle.person.notify(move.why)
        return self._result(number, move.why, move.words, self._safe())

    def _result(self, number: int, why: Reason, words: str = "", safe: str = "") -> RunResult:
        return RunResult(number, ENDINGS[why].outcome, why, self._cycle.last, words, safe)

    def _interrupted(self) -> RunResult:
        projection = self._projection()
        if self._world.by_hand():
            # A person at the terminal: that is as good as `rekindle stop`. A signal from elsewhere,
            # as when the host is shut down, says nothing of what is wanted.
            self._record_stop(projection.run)
            self._cycle.end_kept()
        return self._result(projection.cycle_now, "stopped", safe=self._safe())

    def _record_stop(self, run: Run) -> None:
        """Record the operator's stop: in the log, else outside the folder, else nowhere.

        A disk that is full must not keep the supervisor from ending.
        """
        command = policy.say(run, "stopped", self._world.clock())
        try:
            recorded = self._cycle.append(command)
        except RekindleError as error:  # also a log that was changed by something else
            self._world.tell(Trouble(f"the stop could not be recorded in the log: {error}"))
            with suppress(StoreError):
                self._world.store.note_stop(self._agent.name, command)
        else:
            self._mark_clean_exit(recorded.seq, "stopped")

    def _safe(self) -> str:
        run = self._projection().run
        return endings.explain(run.safe.why, run.safe.words) if run.is_safe else ""

    def _projection(self) -> Projection:
        """Read without folding: a failing disk must not keep the supervisor from ending."""
        try:
            return self._world.store.read(self._agent.name).projection
        except StoreError as error:
            self._world.tell(Trouble(str(error)))
            return Projection(self._agent.name)

    def _mark_clean_exit(self, seq: int, outcome: str) -> None:
        """`seq` is as far as we knew the log: the operator's later word makes the marker void."""
        try:
            self._world.store.folder(self._agent.name).mark_clean_exit(seq, outcome)
        except StoreError as error:
            # The log says it as well; a full disk must not keep the supervisor from ending.
            self._world.tell(Trouble(str(error)))

    def _wait(self, move: Wait, run: Run) -> None:
        now, began = self._world.clock(), self._world.processes.uptime()
        planned = (move.until - now).total_seconds()
        if run.waiting is None or run.waiting.until != move.until:
            wait = events.WaitStarted(ts=now, why=move.why, until=move.until)
            # First, so that a supervisor that is killed in between does not leave it untold.
            if move.why == "limit" and not self._told_limit:
                self._told_limit = True  # once for all the limits of a row
                self._cycle.person.notify_wait(wait)
            self._cycle.append(wait)
        self._has_come_up()
        self._world.tell(Waits(move.why, move.until))
        while self._is_still_said(run):
            waited = self._world.processes.uptime() - began
            left = min(planned - waited, (move.until - self._world.clock()).total_seconds())
            if left <= 0:
                self._waited_after = move.after
                return
            self._world.rest(min(left, POLL_SECONDS))

    def _stay_safe(self, move: Safe, run: Run) -> None:
        self._cycle.person.about_safe_mode()
        self._has_come_up()
        self._world.tell(self._in_safe_mode(move))
        seen: object = None
        while self._is_still_said(run):
            self._world.rest(POLL_SECONDS)
            self._cycle.person.apply_defaults()
            if self._world.goes_on():
                self._cycle.person.answer_at_terminal()
            elif move.why == policy.SETTINGS and (stamp := self._world.settings_stamp()) != seen:
                seen = stamp
                if not self._world.unaccepted():
                    # The manifest is as accepted again, as after a change of branches and back.
                    self._cycle.person.continue_unasked()
        # The person may have changed the task or the settings meanwhile.
        if not self._world.interrupted() and (renewed := self._world.renewed()):
            self._take(renewed, self._cycle.last)

    def _in_safe_mode(self, move: Safe) -> InSafeMode:
        asked, known = self._cycle.person.blocking(), self._cycle.known()
        words = (
            explain_safe_mode(known) if move.why == "crash" and known.run.is_safe else move.words
        )
        if asked is None:
            return InSafeMode(move.why, words)
        takes_enter = questions.takes_enter(asked)
        return InSafeMode(move.why, words, questions.command_line(asked), takes_enter)

    def _has_come_up(self) -> None:
        """For the watchdog: it need not be seen in the log, where what we do is known already."""
        self._world.store.folder(self._agent.name).forget_started()

    def _is_still_said(self, run: Run) -> bool:
        """Whether neither a signal nor the operator's word has changed anything since."""
        if self._world.interrupted():
            return False
        now = self._cycle.known().run
        return (now.since, now.desired, now.is_over) == (run.since, run.desired, run.is_over)
