"""Run the engine client's event loop in a thread, so that any other thread can use the client."""

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError

T = TypeVar("T")


class EngineThread:
    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="rekindle-fleet", daemon=True
        )
        self._thread.start()
        # While Python shuts down, the client's replies to a running loop can abort the process.
        atexit.register(self.close)

    def wait_for(self, answer: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. If this is interrupted, the coroutine is cancelled.

        Raises:
            EngineError: The engine refused the request, or did not answer, or the connection is
                closed.
        """
        with self._lock:
            if self._is_closed:
                answer.close()
                raise self._make_closed_error()
            future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            return future.result()
        except RPCError as failed:
            raise self._translate(failed) from failed
        except CancelledError as cancelled:
            raise self._make_closed_error() from cancelled
        except BaseException:
            future.cancel()
            raise

    def _make_closed_error(self) -> EngineError:
        return EngineError(
            "closed",
            f"the connection to the engine at {self._address} is closed",
            hint="`rekindle.connect` opens a new one",
        )

    def _translate(self, failed: RPCError) -> EngineError:
        words = failed.message.lower()
        if failed.status == RPCStatusCode.INVALID_ARGUMENT and "search attribute" in words:
            return EngineError(
                "attributes",
                f"the namespace of the engine at {self._address} lacks Rekindle's search attributes"
                f": {failed.message}",
                hint="start `rekindle fleet worker` once, which creates them; then try again",
            )
        return EngineError(
            "unreachable",
            f"the request to the engine at {self._address} failed: {failed.message}",
            hint="`rekindle doctor` checks the connection",
        )

    def close(self) -> None:
        """Cancel the calls of all threads, and end the thread. A second call does nothing."""
        if not self._thread.is_alive():  # in a forked process, whose lock may be held forever
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        atexit.unregister(self.close)
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
