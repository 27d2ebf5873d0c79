"""Send the rows of all agents to all pages, as server-sent events.

One checker serves all pages, and pauses while there are none. Each event is encoded once. A page
that reads slowly skips events: as soon as it is ready, it gets the newest rows.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from rekindle.thresholds.web_limits import (
    UI_ALIVE_SECONDS,
    UI_BACK_OFF,
    UI_CHECK_SECONDS,
    UI_CHECK_SHARE,
    UI_IDLE_SECONDS,
)

_LOG = logging.getLogger("rekindle")
ALIVE = b": alive\n\n"
"""Comment that tells a page that the server is still running."""


class RowSource(Protocol):
    """Source of the rows. It is called in a thread, one call at a time."""

    def read(self) -> Iterator[Mapping[str, bytes]]:
        """Yield the rows of all agents in batches, each as JSON by its key."""
        ...


class RowHub:
    """The newest rows, and the pages that wait for them."""

    def __init__(self, source: RowSource, run: str) -> None:
        """Create a hub. `run` identifies this server in the ids of the events."""
        self._source, self._run = source, run
        self._rows: dict[str, bytes] = {}
        self._version = 0
        self._is_complete = False
        """Whether all agents have been read once."""
        self._change = b""
        """Event that leads from the previous version to this one."""
        self._whole: tuple[int, bytes] = (0, b"")
        """Event with all rows, and its version."""
        self._is_current = False
        """Whether the last check succeeded."""
        self._pages = 0
        self._is_due = asyncio.Event()
        self._changed = asyncio.Event()

    async def check(self) -> None:
        """Look for changes until the task is cancelled."""
        interval = UI_CHECK_SECONDS
        while True:
            while not self._pages:
                await self._is_due.wait()
                self._is_due.clear()
            began, version = time.monotonic(), self._version
            try:
                await self._read_rows()
                self._is_current = True
            except Exception:  # noqa: BLE001 - the next check may succeed
                # The pages get no sign of life until a check succeeds, and show that to the user.
                self._is_current = False
                _LOG.exception("the agents could not be read")
            is_idle = version == self._version
            interval = min(interval * UI_BACK_OFF, UI_IDLE_SECONDS) if is_idle else UI_CHECK_SECONDS
            pause = max(interval, (time.monotonic() - began) / UI_CHECK_SHARE)
            if await _wait(self._is_due, pause):
                self._is_due.clear()

    def check_soon(self) -> None:
        """Look for changes now, for example because an action has changed an agent."""
        self._is_due.set()

    async def _read_rows(self) -> None:
        keys: set[str] = set()
        batches = self._source.read()
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            keys |= batch.keys()
            self._publish(batch)
        self._publish({}, self._rows.keys() - keys, is_complete=True)

    def _publish(
        self, rows: Mapping[str, bytes], gone: Collection[str] = (), *, is_complete: bool = False
    ) -> None:
        changed = {key: row for key, row in rows.items() if self._rows.get(key) != row}
        if not changed and not gone and self._is_complete >= is_complete:
            return
        self._is_complete |= is_complete
        self._rows.update(changed)
        for key in gone:
            del self._rows[key]
        self._version += 1
        self._change = self._encode(changed.values(), gone, is_whole=False)
        self._changed.set()
        self._changed = asyncio.Event()

    def _encode(self, rows: Iterable[bytes], gone: Iterable[str], *, is_whole: bool) -> bytes:
        facts = {
            "whole": is_whole,
            "complete": self._is_complete,
            "now": int(time.time()),
            "gone": list(gone),
        }
        start = msgspec.json.encode(facts)[:-1]
        data = b'%s,"rows":[%s]}' % (start, b",".join(rows))
        return b"id: %s\nevent: rows\ndata: %s\n\n" % (self.cursor.encode(), data)

    @property
    def cursor(self) -> str:
        """Id of the newest event."""
        return f"{self._run}-{self._version}"

    async def stream(self, cursor: str = "") -> AsyncIterator[bytes]:
        """Yield the events after the one with the id `cursor`."""
        run, _, number = cursor.rpartition("-")
        sent = int(number) if run == self._run and number.isdecimal() else 0
        self._pages += 1
        self.check_soon()
        try:
            while True:
                if sent != self._version:
                    event, sent = self._find_event(sent), self._version
                    yield event
                elif not await _wait(self._changed, UI_ALIVE_SECONDS) and self._is_current:
                    yield ALIVE
        finally:
            self._pages -= 1

    def _find_event(self, sent: int) -> bytes:
        if sent and sent == self._version - 1:
            return self._change
        if self._whole[0] != self._version:
            whole = self._encode(self._rows.values(), (), is_whole=True)
            self._whole = (self._version, whole)
        return self._whole[1]


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, and return whether it happened in time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
