"""Iterators over the changes of a fleet, which a program can continue after an error."""

import time
from collections import deque
from collections.abc import Iterator

from rekindle.documents.screens.fleet_row import FleetChange
from rekindle.fleet.commands.fleet_watch import FleetWatch
from rekindle.fleet.engine.engine_thread import EngineThread
from rekindle.thresholds.control_limits import FLEET_WATCH_SECONDS


class FleetPolls(Iterator[list[FleetChange]]):
    """Asks the engine in each step. A generator would be finished after the first error."""

    def __init__(self, watch: FleetWatch, thread: EngineThread) -> None:
        self._watch, self._thread = watch, thread

    def __next__(self) -> list[FleetChange]:
        return self._thread.wait_for(self._watch.poll())


class FleetChanges(Iterator[FleetChange]):
    """Yields one change at a time, with a pause before each request but the first."""

    def __init__(self, polls: Iterator[list[FleetChange]]) -> None:
        self._polls = polls
        self._found: deque[FleetChange] = deque()
        self._has_asked = False

    def __next__(self) -> FleetChange:
        while not self._found:
            if self._has_asked:
                time.sleep(FLEET_WATCH_SECONDS)
            self._has_asked = True
            self._found.extend(next(self._polls))
        return self._found.popleft()
