"""Watch the agents' supervisors, and start missing ones.

No lock is needed: if two supervisors are started for one agent, the first takes the agent's lock
and the other exits. If a supervisor does not come up, the watchdog retries with growing delays and
notifies the operator.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, tzinfo

import msgspec

from rekindle.errors import RekindleError
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.briefs.brief_schedule import DueBrief
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    ARCHIVE_EVERY_SECONDS,
    BRIEF_RETRY_SECONDS,
    BriefSettings,
    RestartSettings,
)
from rekindle.policy.supervision import watchdog_table
from rekindle.policy.supervision.run_moves import TAMPERED_REASON
from rekindle.policy.supervision.watchdog_table import StartAttempt, WatchFacts
from rekindle.stores.files import FileStore


class WatchReport(msgspec.Struct, frozen=True):
    agent: str
    started: bool
    words: str
    failed: bool = False
    """Whether an earlier supervisor was started but did not come up."""


class WatchPorts(msgspec.Struct, frozen=True):
    """Functions and settings that a watchdog uses."""

    start: Callable[[str], str]
    """Starts a supervisor, and returns a note about where it runs, or ""."""
    last_words: Callable[[str], str]
    """Returns the last output of a supervisor that failed to start."""
    notify: Callable[[str, str], Sequence[str]]
    """Sends a notification about an agent, and returns any errors."""
    clock: Callable[[], datetime]
    in_window: Callable[[str], bool] = lambda _: False
    """Returns whether an agent's supervisor has a tmux window."""
    archive: Callable[[str], None] = lambda _: None
    """Archives an agent's transcripts, for agents without a running supervisor."""
    limits: RestartSettings = RestartSettings()
    briefs: "BriefStarter | None" = None


class BriefStarter(msgspec.Struct, frozen=True):
    """Function that starts the brief writer, and its settings."""

    start: Callable[[], None]
    """Starts a separate process that writes the due briefs, because models are slow."""
    zone: tzinfo
    limits: BriefSettings = BriefSettings()


class Watchdog:
    def __init__(self, store: FileStore, ports: WatchPorts, staying: Collection[str] = ()) -> None:
        """Create a watchdog. `staying` names the agents that need the user's terminal."""
        self._store, self._ports, self._staying = store, ports, staying
        self._known: dict[str, tuple[object, Projection]] = {}
        self._kept: dict[str, datetime] = {}
        """Time when each agent's transcripts were last archived."""
        self._seen: dict[str, Projection] = {}
        """Projections read in the current round, by agent."""
        self._begun: dict[str, tuple[DueBrief, int, datetime]] = {}
        """The last brief started for each agent, with its log position and start time."""

    def look(self, agents: Sequence[str]) -> list[WatchReport]:
        """Check each agent once. If an agent cannot be read, still check the others."""
        self._seen.clear()
        reports = [self._look_at(agent) for agent in agents]
        return self._start_due_briefs(reports) if self._ports.briefs else reports

    def _look_at(self, agent: str) -> WatchReport:
        try:
            facts = self._collect_facts(agent)
            if facts.supervised:
                self._store.folder(agent).remove_start_record()
            decision = watchdog_table.decide_start(facts)
            report = (
                self._start_supervisor(agent, facts)
                if decision.starts
                else _leave_alone(agent, decision)
            )
            return report if facts.supervised else self._archive_sessions(report)
        except RekindleError as error:
            return WatchReport(agent, started=False, words=str(error))

    def _start_due_briefs(self, reports: list[WatchReport]) -> list[WatchReport]:
        """Start one process that writes all due briefs, one after another."""
        due = {report.agent for report in reports if self._has_due_brief(report.agent)}
        if due and self._ports.briefs:
            try:
                self._ports.briefs.start()
                words = "a process is writing its brief"
            except RekindleError as error:
                words = f"no process could be started to write its brief: {error}"
            add = {
                report.agent: f"{report.words}; {words}"
                for report in reports
                if report.agent in due
            }
            reports = [
                msgspec.structs.replace(report, words=add.get(report.agent, report.words))
                for report in reports
            ]
        return reports

    def _has_due_brief(self, agent: str) -> bool:
        """Return whether a brief is due and was not started recently."""
        briefs, now = self._ports.briefs, self._ports.clock()
        try:
            if briefs is None or not self._store.exists(agent):
                return False
            # Reuse this round's projection, because reading the log is expensive.
            projection = self._seen.pop(agent, None) or self._read_projection(agent)
        except RekindleError:
            return False  # this error was already reported in this round
        due_brief = brief_schedule.find_due_brief(
            now,
            briefs.zone,
            briefs.limits,
            projection.briefed,
            lives=projection.lives,
            attempts=projection.attempts,
            last_active=projection.last_active,
        )
        if due_brief is None:
            return False
        before = self._begun.get(agent)
        is_begun = before is not None and before[:2] == (due_brief, projection.briefed.seq)
        if is_begun and before and abs((now - before[2]).total_seconds()) < BRIEF_RETRY_SECONDS:
            return False
        self._begun[agent] = (due_brief, projection.briefed.seq, now)
        return True

    def _archive_sessions(self, report: WatchReport) -> WatchReport:
        """Archive the transcripts of sessions that the user started without a supervisor."""
        agent, now = report.agent, self._ports.clock()
        before = self._kept.get(agent)
        is_due = before is None or abs((now - before).total_seconds()) >= ARCHIVE_EVERY_SECONDS
        if not is_due or not self._store.exists(agent):
            return report
        self._kept[agent] = now
        try:
            if any(life.transcript for life in self._read_projection(agent).lives.values()):
                self._ports.archive(agent)
        except RekindleError as error:
            words = f"{report.words}; its transcripts could not be archived: {error}"
            return msgspec.structs.replace(report, words=words)
        return report

    def _start_supervisor(self, agent: str, facts: WatchFacts) -> WatchReport:
        """Start the supervisor, unless the previous one is still starting."""
        now, seq = self._ports.clock(), self._read_projection(agent).seq
        before = self._read_attempt(agent, seq)
        if self._store.is_supervised(agent):
            # A supervisor came up between the two checks.
            return _leave_alone(agent, watchdog_table.decide_start(WatchFacts(supervised=True)))
        rests = watchdog_table.compute_rest(before, now, self._ports.limits)
        decision = watchdog_table.decide_start(msgspec.structs.replace(facts, rests=rests))
        if before is None:
            where = self._start_and_note(agent, StartAttempt(seq, now))
            return WatchReport(
                agent, started=True, words="; ".join(filter(None, (decision.words, where)))
            )
        if not decision.starts and before.times == 1:
            return _leave_alone(agent, decision)  # it may still be starting
        words = f"its supervisor did not come up: {self._ports.last_words(agent)}"
        if decision.starts:
            self._start_and_note(agent, StartAttempt(seq, now, before.times + 1, notified=True))
            if not before.notified:
                words = "; ".join([words, *self._ports.notify(agent, words)])
        return WatchReport(agent, started=decision.starts, words=words, failed=True)

    def _start_and_note(self, agent: str, attempt: StartAttempt) -> str:
        # Write the record first. If the watchdog crashes here, the only effect is a single delay.
        self._store.folder(agent).write_start_record(msgspec.json.encode(attempt))
        return self._ports.start(agent)

    def _read_attempt(self, agent: str, seq: int) -> StartAttempt | None:
        """Return the last start attempt, or None if the log has changed since then."""
        record = self._store.folder(agent).read_start_record()
        try:
            attempt = msgspec.json.decode(record, type=StartAttempt) if record else None
        except msgspec.MsgspecError:
            return None
        return attempt if attempt is not None and attempt.seq == seq else None

    def _collect_facts(self, agent: str) -> WatchFacts:
        # Check the lock before reading the log: if it is free, the last supervisor has written its
        # final events. This also covers a supervisor whose folder is missing while it is ending its
        # agent.
        if self._store.is_supervised(agent):
            return WatchFacts(supervised=True)
        if not self._store.exists(agent):
            return WatchFacts(supervised=False)
        projection = self._seen[agent] = self._read_projection(agent)
        run = projection.run
        return WatchFacts(
            supervised=False,
            desired=run.desired,
            is_over=run.is_over,
            marker=self._store.folder(agent).read_clean_exit(),
            wanted=max(run.began, run.restarted, run.wanted),
            is_tampered=run.is_safe and run.safe.why == TAMPERED_REASON,
            may_miss_stop=projection.may_miss_stop,
            stays=agent in self._staying and not self._ports.in_window(agent),
        )

    def _read_projection(self, agent: str) -> Projection:
        """Return the projection, from the cache if nothing has changed."""
        stamp = self._store.stamp(agent)
        cached = self._known.get(agent)
        if cached is None or cached[0] != stamp:
            # The stamp is older than this read, so the next call notices any later write.
            cached = (stamp, self._store.read(agent).projection)
            self._known[agent] = cached
        return cached[1]


def _leave_alone(agent: str, decision: watchdog_table.WatchRow) -> WatchReport:
    return WatchReport(agent, started=False, words=decision.words)
