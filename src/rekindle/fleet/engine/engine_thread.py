"""Run the engine client's event loop in a thread, so that any other thread can use the client."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio.service import RPCError

from rekindle.errors import EngineError

T = TypeVar("T")


class EngineThread:
    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="rekindle-fleet", daemon=True
        )
        self._thread.start()

    def wait_for(self, answer: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. If this is interrupted, the coroutine is cancelled.

        Raises:
            EngineError: The engine refused the request, or did not answer.
        """
        future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            return future.result()
        except RPCError as failed:
            raise EngineError(
                "unreachable",
                f"the request to the engine at {self._address} failed: {failed.message}",
                hint="`rekindle doctor` checks the connection",
            ) from failed
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
