"""Hold an agent's launches while the quota is kept for the person or for other agents."""

import msgspec

from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.projection.projection import Projection
from rekindle.policy.quota.pacing import QuotaHold
from rekindle.policy.supervision.next_move import is_quota_lifted
from rekindle.policy.supervision.run_moves import QUOTA_REASON, Move


class QuotaCheck:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world

    def check_move(self, move: Move, projection: Projection) -> Move:
        """Return the move, or a wait if its launch would use quota that is kept for others."""
        if self._agent.stays:
            return move  # a person works with the agent
        with self._ports.report_trouble():
            if isinstance(move, WaitUntil) and move.why == QUOTA_REASON:
                hold = self._find_hold()  # for the route that is free first
                return msgspec.structs.replace(move, words=hold.words) if hold else move
            launches = isinstance(move, StartFresh | ResumeSession)
            hold = self._find_hold() if launches and not is_quota_lifted(projection) else None
            if hold is not None:
                return WaitUntil(hold.until, QUOTA_REASON, 0, words=hold.words)
        return move

    def is_released(self) -> bool:
        """Return whether an agent that waits for its share of the quota may work."""
        with self._ports.report_trouble():
            others = [route for route in self._agent.routes if route != self._agent.route]
            is_held = self._find_hold() is not None
            return not is_held or any(self._ports.route_hold(route) is None for route in others)
        return False

    def _find_hold(self) -> QuotaHold | None:
        hold, route = self._ports.route_hold(self._agent.route), self._agent.route
        hold = hold if hold is not None and hold.until > self._ports.clock() else None
        self._ports.note_hold(route, hold)
        return hold
