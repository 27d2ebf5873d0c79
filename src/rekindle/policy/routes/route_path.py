"""Decide how an open cycle continues on the route that was chosen for it.

If the CLI stays the same, its session continues on the other account. Otherwise, a fresh session
continues from a checkpoint of the last one.
"""

from collections.abc import Sequence

import msgspec

from rekindle.policy.exits import session_choice, stop_reasons
from rekindle.policy.exits.restart import EnterSafeMode, StopRun, WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.projection.sessions import NOT_IN_LOG, LaunchRecord
from rekindle.policy.routes.choose_route import RouteChoice


class RoutePath(msgspec.Struct, frozen=True):
    """The way from a cycle's last launch to the route for its next launch."""

    choice: RouteChoice | None
    """The chosen route; None if the agent has only one."""
    last: LaunchRecord | None
    """The cycle's last launch; None before its first."""
    can_carry: bool = False
    """Whether the CLI of the chosen route can continue a session of another account."""

    @property
    def is_moving(self) -> bool:
        """Return whether the next launch runs on another route than the last one."""
        choice, last = self.choice, self.last
        return choice is not None and last is not None and last.route != choice.route

    @property
    def is_new_session(self) -> bool:
        """Return whether the last session cannot continue on the chosen route."""
        if not self.is_moving or self.choice is None or self.last is None:
            return False
        is_same_cli = self.last.harness == self.choice.route.harness
        return not (self.can_carry and is_same_cli and self.last.session)

    def decide_hold(self, *, waits: bool = True) -> WaitUntil | EnterSafeMode | StopRun | None:
        """Return the decision that prevents a start on the chosen route, or None.

        Without `waits`, the run ends at a usage limit.

        If the work stays on its route, the restart policy decides about the exit of its last
        launch.
        """
        if self.choice is None or self.choice.wait is None:
            return None
        if self.is_moving and self.choice.is_stuck:
            return EnterSafeMode(self.choice.wait.why)
        if self.is_moving and self.choice.wait.why == "limit" and not waits:
            return StopRun("limit")
        return self.choice.wait if self.is_moving or self.choice.wait.after <= 0 else None

    def select(self, launches: Sequence[LaunchRecord]) -> Sequence[LaunchRecord]:
        """Return the launches whose exits count for the next launch: those on its route.

        After a move, none of them counts.
        """
        if self.choice is None:
            return launches
        route = self.choice.route
        return [] if self.is_moving else [launch for launch in launches if launch.route == route]

    def is_checkpoint_due(self, launches: Sequence[LaunchRecord], checkpoint: int) -> bool:
        """Return whether a checkpoint must be written before the next launch.

        `checkpoint` is the log position of the last one.
        """
        if self.last is None or checkpoint >= self.last.ended_seq:
            return False
        is_begun = any(launch.opened for launch in launches)
        return stop_reasons.needs_checkpoint(self.last.exit) or (self.is_new_session and is_begun)

    def choose_session(
        self, launches: Sequence[LaunchRecord], checkpoint: int
    ) -> StartFresh | ResumeSession:
        """Return how the cycle continues. `checkpoint` is the position of the last checkpoint."""
        if not self.is_moving or self.choice is None or self.last is None:
            return session_choice.choose_session(launches)
        last = self.last
        is_handed = last.ended_seq < checkpoint < NOT_IN_LOG
        is_known = session_choice.has_opened_session(launches, last.session)
        # A checkpoint for another route is not needed if this one is free again by now.
        ends = stop_reasons.needs_checkpoint(last.exit) or self.is_new_session
        if is_known and not ends:
            return ResumeSession(last.session)
        is_begun = any(launch.opened for launch in launches)
        why = f"{explain_move(last)}, so the work continues on {self.choice.route}"
        return StartFresh(recovery=is_begun and not is_handed, why=why)


def explain_move(last: LaunchRecord) -> str:
    """Explain why work leaves the route of its last launch."""
    if stop_reasons.find_reaction(last.exit) in {"wait", "retry", "person"}:
        reason = stop_reasons.STOP_REASONS[stop_reasons.parse_reason(last.exit)].text
        return f"{last.route}: {reason}"
    return f"it leaves {last.route} at your request"
