"""A launch that runs: whether it works beyond the bounds without progress."""

import msgspec

from rekindle.flows.world import World
from rekindle.policy import idle
from rekindle.policy.idle import Idle
from rekindle.policy.progress import progress


class Fruitless:
    """Looks at the folder once a bound is reached: asking git all the time would cost too much."""

    def __init__(self, world: World, before: Idle, stretch: tuple[str, float]) -> None:
        """`before` is what the launches before it did without progress."""
        self._world, self._idle = world, before
        self._before = list(before.signs)
        self._since, self._usd = world.elapsed(), 0.0
        self.has_progressed = False
        self.stretch = stretch
        """Commit and moment after which no progress was seen yet."""

    def seconds(self) -> float | None:
        """Return the time since progress was seen, or None if none was."""
        return self._world.elapsed() - self._since if self.has_progressed else None

    def reached(self, usd: float, *, billed: bool | None) -> str:
        """Return which bound is reached, in words; empty: none is, or there was progress.

        `usd` is what the launch has cost so far.
        """
        bounds = self._world.settings.runtime.progress
        found = self._idle
        if billed is not None:
            found = msgspec.structs.replace(found, billed=billed)
        seconds = self._world.elapsed() - self._since
        # Launches are counted when they have ended.
        found = msgspec.structs.replace(found, launches=0)
        words = idle.is_over(found, bounds, seconds=seconds, usd=usd - self._usd)
        if not words:
            return ""
        signs = self._world.signs(*self.stretch)
        if not progress(signs, self._before):
            return words
        self._before += [signs] if signs else []
        self.has_progressed = True
        self._idle = Idle(billed=found.billed)
        self._since, self._usd = self._world.elapsed(), usd
        self.stretch = (self._world.head(), self._world.clock().timestamp())
        return ""
