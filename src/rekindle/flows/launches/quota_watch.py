"""Record the quota that a running CLI reports for its account."""

from collections.abc import Iterable
from contextlib import suppress

from rekindle.documents import events
from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.launch_types import LaunchExit
from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.documents.launches.route import Route
from rekindle.errors import RekindleError
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.supervision.next_move import is_quota_lifted


class QuotaWatch:
    """Stores one launch's reports for all agents, and records changes in the agent's log."""

    def __init__(self, origin: LaunchStarted, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._origin, self._agent, self._ports = origin, agent, world
        self.route = Route(origin.harness, origin.account)
        self._lifted: bool | None = None
        self.exit: LaunchExit | None = None
        """How the process exits because it must not use more quota, or None."""

    def take(self, report: QuotaReport) -> None:
        """Store a report. A full disk must not stop the agent."""
        with suppress(RekindleError):
            if not self._ports.note_quota(self.route, report):
                return
            event = events.QuotaReported(
                ts=self._ports.clock(),
                launch=self._origin.launch,
                harness=self.route.harness,
                account=self.route.account,
                windows=report.windows,
            )
            with self._ports.store.writer(self._agent.name) as writer:
                writer.append(event)

    def take_lines(self, lines: Iterable[bytes]) -> None:
        """Store the last report in a transcript, for a CLI whose output has none.

        A session of another account may begin with that account's reports.
        """
        found = [report for line in lines if (report := self._agent.harness.quota(line))]
        if found and (found[-1].at or self._origin.ts) >= self._origin.ts:
            self.take(found[-1])

    def must_stop(self, run: str, meter: SpendMeter) -> bool:
        """Return whether the process must stop now because the rest of the quota is not for it.

        The exit counts as a usage limit, so the session continues later. `run` is the name of the
        run, or empty if it is not known yet.
        """
        if self._agent.stays or self.exit is not None:
            return False
        with suppress(RekindleError):
            if run:
                self._ports.note_spending(self.route, run, meter.spent(), True)  # noqa: FBT003 - a port
            if not self._is_lifted() and (hold := self._ports.route_stop(self.route)):
                # A supervisor that asks again before each launch may continue before that time.
                until = self._ports.clock() if self._ports.rechecks_quota else hold.until
                resets_at = int(until.timestamp()) + 1
                self.exit = LaunchExit("limit", hold.words, resets_at=resets_at, is_held=True)
        return self.exit is not None

    def _is_lifted(self) -> bool:
        if self._lifted is None:
            projection = self._ports.store.read(self._agent.name).projection
            self._lifted = is_quota_lifted(projection, self._origin.seq)
        return self._lifted
