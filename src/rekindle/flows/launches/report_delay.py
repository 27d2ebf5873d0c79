"""Let hook reports wait in the inbox until another host would need them."""

from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision import budget, held_reports
from rekindle.system.files import file_status
from rekindle.thresholds.fleet_limits import FLEET_REPORTS_HELD


class ReportDelay:
    """Decides when the supervisor folds an agent's inbox, and reads it otherwise."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world
        self._folder = world.store.folder(agent.name)
        self.note_fold()

    def note_fold(self) -> None:
        self._folded_at = self._ports.elapsed()
        self._state = file_status.make_file_stamp(self._folder.state)

    def read_waiting(self, spent: budget.RunSpending) -> Projection | None:
        """Return the projection with the inbox, or None if the inbox must be folded now."""
        if self._ports.elapsed() - self._folded_at >= self._ports.reports_wait:
            return None
        view = self._ports.store.read(self._agent.name)
        before = view.committed.run.run_spending()
        if (
            view.proposed is not None
            or view.unreadable
            or len(view.pending) > FLEET_REPORTS_HELD
            or file_status.make_file_stamp(self._folder.state) != self._state
            or held_reports.is_spending_needed(before, spent, self._agent.budget)
            or not held_reports.shows_only_activity(view.committed, view.projection)
        ):
            return None
        return view.projection
