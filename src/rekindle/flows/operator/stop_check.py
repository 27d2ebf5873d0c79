"""Check for stop requests while a program's answer is pending."""

from collections.abc import Callable

from rekindle.errors import FolderLostError
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.stores.files import FileStore


class StopCheck:
    """Detects stop signals immediately, and stop commands after a short delay."""

    def __init__(
        self,
        store: FileStore,
        agent: str,
        interrupted: Callable[[], int],
        elapsed: Callable[[], float],
    ) -> None:
        self._store, self._agent = store, agent
        self._interrupted, self._elapsed = interrupted, elapsed
        self._looked = elapsed()

    def __call__(self) -> bool:
        if self._interrupted():
            return True
        now = self._elapsed()
        if now - self._looked < POLL_SECONDS:
            return False
        self._looked = now
        try:
            return self._store.read(self._agent).projection.run.desired == "stopped"
        except FolderLostError:
            return True
