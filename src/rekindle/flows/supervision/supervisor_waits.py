"""Wait until a given time or for a decision, while watching for the operator's commands."""

from collections.abc import Callable

from rekindle.documents import events
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.supervisor_ports import SafeModeReport, SupervisorPorts, WaitReport
from rekindle.policy.exits.restart import EnterSafeMode, WaitUntil
from rekindle.policy.operator import answers
from rekindle.policy.operator.build_row import explain_safe_mode
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.policy.supervision import run_moves as policy
from rekindle.policy.supervision.run_moves import RunState
from rekindle.thresholds.quota_limits import LEDGER_SECONDS


class SupervisorWaits:
    def __init__(self, agent: str, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world
        self.has_notified_limit = False
        """Whether the operator was already notified of the current usage limit."""

    def wait_until(
        self, log: AgentLog, move: WaitUntil, run: RunState, is_over: Callable[[], bool] = bool
    ) -> bool:
        """Wait until the move's time. Return False if a command or signal arrives first.

        `is_over` is called once a minute. The wait ends if it returns true.
        """
        now, began = self._ports.clock(), self._ports.processes.uptime()
        planned = (move.until - now).total_seconds()
        if run.waiting is None or run.waiting.until != move.until:
            wait = events.WaitStarted(ts=now, why=move.why, until=move.until, words=move.words)
            # Notify before recording the wait, so that a crash cannot lose the notification.
            if move.why == "limit" and not self.has_notified_limit:
                self.has_notified_limit = True  # notify only once for consecutive limits
                log.person.notify_wait(wait)
            log.append(wait)
        self.clear_start_record()
        self._ports.tell(WaitReport(move.why, move.until, move.words))
        checks = 0
        while self._is_command_unchanged(log, run):
            waited = self._ports.processes.uptime() - began
            left = min(planned - waited, (move.until - self._ports.clock()).total_seconds())
            if left <= 0:
                return True
            if waited // LEDGER_SECONDS > checks:
                checks += 1
                if is_over():
                    return True
            self._ports.rest(min(left, POLL_SECONDS))
        return False

    def wait_in_safe_mode(self, log: AgentLog, move: EnterSafeMode, run: RunState) -> None:
        """Wait in safe mode until the operator decides, or until nothing blocks the agent."""
        log.person.ask_about_current_safe_mode()
        self.clear_start_record()
        self._ports.tell(_make_safe_mode_report(log, move))
        last_stamp: object = None
        while self._is_command_unchanged(log, run):
            self._ports.rest(POLL_SECONDS)
            log.person.apply_defaults()
            if self._ports.enter_pressed():
                log.person.answer_at_terminal()
            elif (
                move.why == policy.SETTINGS_REASON
                and (stamp := self._ports.settings_stamp()) != last_stamp
            ):
                last_stamp = stamp
                if not self._ports.unaccepted():
                    # The accepted manifest is back, for example because the user switched branches.
                    log.person.continue_unasked()

    def clear_start_record(self) -> None:
        """Remove the watchdog's start record, because the supervisor is up."""
        self._ports.store.folder(self._agent).remove_start_record()

    def _is_command_unchanged(self, log: AgentLog, run: RunState) -> bool:
        """Return False if a signal or a command has arrived since `run` was read."""
        if self._ports.interrupted():
            return False
        now = log.known().run
        return all(
            getattr(now, name) == getattr(run, name)
            for name in ("since", "desired", "is_over", "route")
        )


def _make_safe_mode_report(log: AgentLog, move: EnterSafeMode) -> SafeModeReport:
    question, projection = log.person.blocking(), log.known()
    words = (
        explain_safe_mode(projection)
        if move.why == "crash" and projection.run.is_safe
        else move.words
    )
    if question is None:
        return SafeModeReport(move.why, words)
    takes_enter = answers.accepts_enter(question)
    return SafeModeReport(move.why, words, answers.render_answer_command(question), takes_enter)
