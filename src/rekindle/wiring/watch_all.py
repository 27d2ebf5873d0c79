"""One watchdog for all projects that the user trusts on this host.

The records of trusted folders are the register of projects: what `run`, `up` or `init` accepts is
looked after from the next look on, and what `forget` removes is not.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from rekindle.errors import RekindleError, UsageError
from rekindle.flows.watch_agents import Looked
from rekindle.policy.settings import Watch
from rekindle.system import disk, user_folder
from rekindle.system.processes import Interruption
from rekindle.wiring import trust
from rekindle.wiring.watch import Watchdog, rest

Tell = Callable[[Path, Looked], None]


class WatchAll:
    """Looks after every trusted project, each by its own settings."""

    def __init__(self) -> None:
        self._watchdogs: dict[Path, Watchdog] = {}
        self._failed: dict[Path, str] = {}

    @property
    def every(self) -> float:
        return min((one.every for one in self._watchdogs.values()), default=Watch().every)

    def look(self) -> Iterator[tuple[Path, Looked]]:
        """Look once at each; one that cannot be read must not keep the others waiting."""
        folders = trust.list_trusted()
        self._watchdogs = {at: one for at, one in self._watchdogs.items() if at in folders}
        for folder in folders:
            try:
                watchdog = self._watchdogs.get(folder) or Watchdog(folder)
                self._watchdogs[folder] = watchdog
                found = list(watchdog.look())
                self._failed.pop(folder, None)
            except RekindleError as error:
                words = str(error)
                is_new, self._failed[folder] = self._failed.get(folder) != words, words
                found = [Looked("-", started=False, words=words)] if is_new else []
            yield from ((folder, one) for one in found)


def keep_looking_at_all(tell: Tell) -> None:
    """Look after all trusted projects, again and again, until a signal ends the daemon."""
    lock_file = user_folder.make() / "daemon"
    with disk.locked(lock_file, 0.0) as lock, Interruption() as interruption:
        if lock is None:
            raise UsageError(
                "the daemon of all projects runs already",
                hint="`rekindle status --all` shows how the agents are",
            )
        watching = WatchAll()
        while not interruption.count:
            for folder, found in watching.look():
                tell(folder, found)
            rest(watching.every, interruption)
