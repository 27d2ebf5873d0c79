"""Record each launch's exit, cost and signs of work."""

from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import LaunchExit, SweptProcesses
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.cycles.window_sizes import WindowSizes
from rekindle.flows.cycles.work_signs import add_resolved
from rekindle.flows.launches.background_processes import BackgroundProcesses
from rekindle.flows.launches.launch import Launch
from rekindle.flows.launches.message_delivery import find_deliveries
from rekindle.flows.launches.refused_calls import (
    RefusedCalls,
    find_refused_calls,
    make_refused_exit,
)
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.exits import usage_limits
from rekindle.policy.exits.restart import HANDOFF_EXIT, LOST_EXIT
from rekindle.policy.progress.work_progress import find_progress, name_series
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import LastActivity, Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.supervision.next_move import measure_idle_work


class ExitRecorder:
    """Records the exits of one agent's launches."""

    def __init__(
        self,
        agent: AgentSpec,
        world: SupervisorPorts,
        log: AgentLog,
        windows: WindowSizes,
        background: BackgroundProcesses,
    ) -> None:
        self._agent, self._ports, self._log = agent, world, log
        self._windows, self._background = windows, background
        self.interrupting_request = ""
        """The user request that was interrupted when the last session was stopped for a handoff."""

    def record(
        self,
        number: int,
        launch: Launch,
        exited: LaunchExit,
        swept: SweptProcesses,
        *,
        started: bool = True,
    ) -> LaunchExit:
        """Record a launch's exit and return it. It may be replaced by another one."""
        watched, start = launch.watched, launch.start
        usage = launch.usage()
        final_windows = dict(watched.finished.windows) if watched.finished is not None else {}
        if usage is not None:
            usage = usage.within(launch.gauge.windows | final_windows)
        if self._agent.stays:
            # The terminal shows the output directly, so only the hooks report the session.
            watched.opened = self._find_opened_session(launch.mark)
        opened = watched.opened == (start.session or watched.opened) != ""
        # A CLI without resume never reports a session, even if it ran.
        ran = launch.code is not None and not self._agent.harness.CAN.resumes
        spent = launch.meter.spent(ended=True)
        now = self._ports.clock()
        session = start.session or watched.opened
        sign = launch.last_sign()
        ended: list[events.AnyEvent] = [sign] if sign else []
        if exited.kind == HANDOFF_EXIT:
            launch.gauge.set_transcript(launch.transcript())
            trigger = launch.gauge.trigger(launch.mark, number, session)
            ended.append(msgspec.structs.replace(trigger, work=self._describe_work()))
        self.interrupting_request = (
            launch.gauge.read_interrupting_request() if self._agent.stays else ""
        )
        launch.gauge.end()
        launch.note_last_quota()
        self._windows.record(self._log.known(), launch.gauge.windows | final_windows)
        refused = find_refused_calls(self._agent, launch, self._ports.store.redaction)
        signs = self._read_signs(*launch.stretch) if started else None
        is_useless = exited.kind == "clean" and self._is_useless(launch, refused, signs)
        if is_useless:
            exited = make_refused_exit(self._agent, refused.missing)
        if exited.kind == "misconfigured" and not opened and self._has_worked():
            exited = msgspec.structs.replace(exited, kind="crash")  # such as during an update
        reported = frozenset(launch.watched.reported_refusals)
        # The agent will enter safe mode, which already asks a question.
        calls = () if is_useless else refused.missing
        asked = self._log.person.ask_about_refused_calls(self._log.known(), calls, launch.mark)
        self._log.person.report_refused_calls([*refused.missing, *refused.denied], asked, reported)
        end = events.LaunchEnded(
            ts=now,
            launch=launch.mark,
            cycle=number,
            session=session,
            exit=exited.kind,
            resumes=start.resumes,
            started=started,
            opened=opened or ran,
            words=exited.words,
            hint=exited.hint,
            resets_at=_find_reset_time(exited, now),
            is_held=exited.is_held,
            code=launch.code,
            refused=len(refused.missing) + len(refused.denied),
            swept=swept.processes,
            ended=self._background.list_ended_commands(swept),
            seconds=launch.seconds,
            usd=launch.meter.reported_usd,
            session_usd=launch.meter.session_usd,
            tokens=usage.tokens if usage else None,
            window=usage.window if usage else None,
            known=usage.known if usage else "",
            run_usd=spent.usd,
            run_tokens=spent.tokens,
            unpriced=spent.unpriced,
            is_estimated=spent.is_estimated,
            billed=watched.billed,
            signs=signs,
            fruitless=launch.fruitless,
        )
        known = self._log.known()
        before = known.run.refused_call_count()
        received = find_deliveries(
            self._ports,
            known,
            launch.mark,
            session,
            transcript=launch.transcript(),
            is_read=ran or exited.kind == "clean" or watched.finished is not None,
        )
        self._log.append(*ended, end, *refused.record(end, before), *asked, *received)
        return exited

    def record_lost(
        self, mark: str, launch: LaunchRecord, known: Projection, swept: SweptProcesses
    ) -> LaunchExit:
        """Record the exit of a launch whose supervisor died, and return that exit."""
        lost_exit = LaunchExit("crash", "its supervisor died before it exited")
        reported = self._find_opened_session(mark)
        spent = known.run.run_spending()
        session = launch.session or reported
        # Without launch hooks, there is no way to tell whether the session was opened.
        opened = bool(reported) or not self._agent.harness.CAN.launch_hooks
        now = self._log.known()  # the hooks may have reported the transcript at the last moment
        life = now.lives.get(session)
        received = find_deliveries(
            self._ports,
            now,
            mark,
            session,
            transcript=life.transcript if life is not None else "",
            is_read=not self._agent.harness.CAN.hooks,
        )
        self._log.append(
            events.LaunchEnded(
                ts=self._ports.clock(),
                launch=mark,
                cycle=launch.cycle,
                session=session,
                exit=LOST_EXIT,
                resumes=launch.resumes,
                opened=opened,
                words=lost_exit.words,
                swept=swept.processes,
                ended=self._background.list_ended_commands(swept),
                seconds=_measure_work(launch, known.heard),
                run_usd=spent.usd,
                run_tokens=spent.tokens,
                unpriced=spent.unpriced + self._is_unpriced(),
                is_estimated=spent.is_estimated,
                signs=self._read_signs(
                    launch.head, launch.began.timestamp() if launch.began else 0.0
                ),
            ),
            *received,
        )
        return lost_exit

    def _read_signs(self, head: str, since: float) -> events.WorkSigns | None:
        """Return the signs of work since a commit and a time, or None if unknown."""
        projection = self._log.known()
        signs = add_resolved(self._ports.signs(head, since), projection, since)
        return name_series(signs, measure_idle_work(projection).signs) if signs else None

    def _is_unpriced(self) -> bool:
        """Return whether only the CLI's final report would have shown a launch's cost."""
        return self._agent.harness.CAN.reports_money and not self._agent.prices

    def _find_opened_session(self, mark: str) -> str:
        """Return the session that hooks reported for a launch, including records in the inbox."""
        lives = self._ports.store.read(self._agent.name).projection.lives
        return sessions.find_launched_session(lives, mark)

    def _describe_work(self) -> str:
        """Return a fingerprint of the visible work, or "" if there is none."""
        seen = self._ports.work()
        closed = sum(not loop.is_open for loop in self._log.known().loops.values())
        return f"{seen}-{closed}" if seen else ""

    def _has_worked(self) -> bool:
        """Return whether a launch of the run has opened a session."""
        known = self._log.known()
        return any(one.opened and one.seq > known.run.since for one in known.attempts.values())

    def _is_useless(
        self, launch: Launch, refused: RefusedCalls, signs: events.WorkSigns | None
    ) -> bool:
        """Return whether the CLI refused calls and the launch made no progress."""
        if not refused.missing or launch.fruitless is not None:
            return False
        return not find_progress(signs, measure_idle_work(self._log.known()).signs)


def _find_reset_time(exited: LaunchExit, now: datetime) -> int | None:
    """Return the reset time of a usage limit. Call only once: the result depends on the clock."""
    if exited.resets_at is not None or exited.kind != "limit":
        return exited.resets_at
    zone = now.astimezone().tzinfo
    reset_time = usage_limits.parse_reset_time(exited.hint, now=now, zone=zone) if zone else None
    return int(reset_time.timestamp()) + 1 if reset_time else None


def _measure_work(launch: LaunchRecord, last: LastActivity) -> float:
    """Return how long a launch without a recorded exit worked, up to its last activity."""
    if launch.began is None or last.seq < launch.seq:
        return 0.0
    return max(0.0, last.at - launch.began.timestamp())
