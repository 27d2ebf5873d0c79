"""Watch the agents' supervisors, and start the missing ones.

The watchdog needs no lock: if several supervisors are started for one agent, the first takes the
agent's lock, and the others exit without doing anything. If a supervisor does not come up, the
watchdog retries after growing pauses and notifies a person.
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
    """Whether an earlier supervisor was launched but failed to start."""


class WatchPorts(msgspec.Struct, frozen=True):
    """The ports that a watchdog uses."""

    start: Callable[[str], str]
    """Function that starts a supervisor, and returns a note about where it runs, or ""."""
    last_words: Callable[[str], str]
    """Function that returns the last output of a supervisor that failed to start."""
    notify: Callable[[str, str], Sequence[str]]
    """Function that notifies a person about an agent, and returns the errors."""
    clock: Callable[[], datetime]
    in_window: Callable[[str], bool] = lambda _: False
    """Function that returns whether an agent's supervisor has a tmux window, and so a terminal."""
    archive: Callable[[str], None] = lambda _: None
    """Function that archives an agent's transcripts; a running supervisor archives them itself."""
    limits: RestartSettings = RestartSettings()
    briefs: "BriefStarter | None" = None


class BriefStarter(msgspec.Struct, frozen=True):
    """The ports and settings used to start writing briefs."""

    start: Callable[[], None]
    """Function that starts a separate process for the due briefs, because asking a model takes
    time.
    """
    zone: tzinfo
    limits: BriefSettings = BriefSettings()


class Watchdog:
    def __init__(self, store: FileStore, ports: WatchPorts, staying: Collection[str] = ()) -> None:
        """Create a watchdog; `staying` names the agents that need a person's terminal."""
        self._store, self._ports, self._staying = store, ports, staying
        self._known: dict[str, tuple[object, Projection]] = {}
        self._kept: dict[str, datetime] = {}
        """Time at which each agent's transcripts were last archived."""
        self._seen: dict[str, Projection] = {}
        """Projections that were read in the current round, by agent."""
        self._begun: dict[str, tuple[DueBrief, int, datetime]] = {}
        """Log position and time of each agent's most recently started brief."""

    def look(self, agents: Sequence[str]) -> list[WatchReport]:
        """Check each agent once; an agent that cannot be read does not delay the others."""
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
        """Start a process that writes all due briefs one by one."""
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
        """Return whether a brief is due and no attempt was started in the last retry interval."""
        briefs, now = self._ports.briefs, self._ports.clock()
        try:
            if briefs is None or not self._store.exists(agent):
                return False
            # Reuse the projection from this round, because reading it is the most expensive part.
            projection = self._seen.pop(agent, None) or self._read_projection(agent)
        except RekindleError:
            return False  # the error was already reported in this round
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
        """Archive the transcripts of sessions that a person started without a supervisor."""
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
            # The supervisor came up between the two checks, so the start record is obsolete.
            return _leave_alone(agent, watchdog_table.decide_start(WatchFacts(supervised=True)))
        rests = watchdog_table.compute_rest(before, now, self._ports.limits)
        decision = watchdog_table.decide_start(msgspec.structs.replace(facts, rests=rests))
        if before is None:
            where = self._start_and_note(agent, StartAttempt(seq, now))
            return WatchReport(
                agent, started=True, words="; ".join(filter(None, (decision.words, where)))
            )
        if not decision.starts and before.times == 1:
            return _leave_alone(agent, decision)  # the supervisor may still be starting
        words = f"its supervisor did not come up: {self._ports.last_words(agent)}"
        if decision.starts:
            self._start_and_note(agent, StartAttempt(seq, now, before.times + 1, notified=True))
            if not before.notified:
                words = "; ".join([words, *self._ports.notify(agent, words)])
        return WatchReport(agent, started=decision.starts, words=words, failed=True)

    def _start_and_note(self, agent: str, tried: StartAttempt) -> str:
        # Write the record first. After a crash in between, the supervisor counts as started, which
        # delays the next attempt by at most one pause.
        self._store.folder(agent).write_start_record(msgspec.json.encode(tried))
        return self._ports.start(agent)

    def _read_attempt(self, agent: str, seq: int) -> StartAttempt | None:
        """Return the last start attempt, or None if the log has changed since."""
        record = self._store.folder(agent).read_start_record()
        try:
            tried = msgspec.json.decode(record, type=StartAttempt) if record else None
        except msgspec.MsgspecError:
            return None
        return tried if tried is not None and tried.seq == seq else None

    def _collect_facts(self, agent: str) -> WatchFacts:
        # Check the lock before reading the log. If no supervisor holds it, the last one has already
        # written its final events. The check also covers a missing folder, whose supervisor may
        # still be ending the agent.
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
        """Return the projection, from the cache if nothing was written since the last read."""
        stamp = self._store.stamp(agent)
        cached = self._known.get(agent)
        if cached is None or cached[0] != stamp:
            # Take the stamp before reading, so that the next call notices any later write.
            cached = (stamp, self._store.read(agent).projection)
            self._known[agent] = cached
        return cached[1]


def _leave_alone(agent: str, decision: watchdog_table.WatchRow) -> WatchReport:
    return WatchReport(agent, started=False, words=decision.words)
