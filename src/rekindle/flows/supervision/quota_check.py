"""Hold an agent's launches while the quota is kept for the person or for other agents."""

from datetime import datetime

from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.supervision.run_moves import QUOTA_REASON, Move


class QuotaCheck:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world

    def check_move(self, move: Move) -> Move:
        """Return the move, or a wait if its launch would use quota that is kept for others."""
        if self._agent.stays:
            return move  # a person works with the agent
        with self._ports.report_trouble():
            until = self._find_hold() if isinstance(move, StartFresh | ResumeSession) else None
            if until is not None:
                return WaitUntil(until, QUOTA_REASON, 0)
        return move

    def is_released(self) -> bool:
        """Return whether an agent that waits for its share of the quota may work."""
        with self._ports.report_trouble():
            return self._find_hold() is None
        return False

    def _find_hold(self) -> datetime | None:
        until = self._ports.route_hold(self._agent.route)
        return until if until is not None and until > self._ports.clock() else None
