"""Check whether a running launch exceeds its limits on work without progress."""

import msgspec

from rekindle.flows.supervisor_ports import SupervisorPorts
from rekindle.policy.progress import idle
from rekindle.policy.progress.idle import IdleWork
from rekindle.policy.progress.work_progress import find_progress


class ProgressGuard:
    """Checks for progress only after a limit is reached, because running git is slow."""

    def __init__(
        self, world: SupervisorPorts, before: IdleWork, stretch: tuple[str, float]
    ) -> None:
        """Create a guard. `before` is the work that earlier launches did without progress."""
        self._ports, self._idle = world, before
        self._before = list(before.signs)
        self._since, self._usd = world.elapsed(), 0.0
        self.has_progressed = False
        self.stretch = stretch
        """Commit and Unix time of the last progress, or of the launch's start if there was none."""

    def seconds(self) -> float | None:
        """Return the seconds since the last progress, or None if there was no progress."""
        return self._ports.elapsed() - self._since if self.has_progressed else None

    def reached(self, usd: float, *, billed: bool | None) -> str:
        """Return a description of the limit that was exceeded without progress, or "".

        `usd` is the launch's cost so far, in dollars.
        """
        bounds = self._ports.settings.runtime.progress
        idle_work = self._idle
        if billed is not None:
            idle_work = msgspec.structs.replace(idle_work, billed=billed)
        seconds = self._ports.elapsed() - self._since
        # A launch is counted when it ends.
        idle_work = msgspec.structs.replace(idle_work, launches=0)
        words = idle.find_reached_bound(idle_work, bounds, seconds=seconds, usd=usd - self._usd)
        if not words:
            return ""
        signs = self._ports.signs(*self.stretch)
        if not find_progress(signs, self._before):
            return words
        self._before += [signs] if signs else []
        self.has_progressed = True
        self._idle = IdleWork(billed=idle_work.billed)
        self._since, self._usd = self._ports.elapsed(), usd
        self.stretch = (self._ports.head(), self._ports.clock().timestamp())
        return ""
