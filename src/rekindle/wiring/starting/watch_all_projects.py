"""Run one watchdog for all projects that the user trusts on this host.

The projects come from the records of trusted folders. A project is watched from when `run`, `up` or
`init` accepts it until `forget` removes it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from rekindle.errors import RekindleError, UsageError
from rekindle.flows.supervision.watchdog import WatchReport
from rekindle.policy.settings.runtime_settings import WatchSettings
from rekindle.system.files import file_locks, user_folder
from rekindle.system.processes.child_processes import Interruption
from rekindle.wiring.access import trust_checks
from rekindle.wiring.starting.background_start import (
    ProjectWatchdog,
    sleep_until_signal,
)
from rekindle.wiring.starting.metrics_export import export_metrics

Tell = Callable[[Path, WatchReport], None]


class AllProjectsWatchdog:
    """Watches every trusted project, each with its own settings."""

    def __init__(self) -> None:
        self._watchdogs: dict[Path, ProjectWatchdog] = {}
        self._failed: dict[Path, str] = {}

    @property
    def every(self) -> float:
        return min(
            (watchdog.every for watchdog in self._watchdogs.values()),
            default=WatchSettings().interval,
        )

    def look(self) -> Iterator[tuple[Path, WatchReport]]:
        """Check each project once. An error in one project does not affect the others."""
        folders = trust_checks.list_trusted()
        self._watchdogs = {
            at: watchdog for at, watchdog in self._watchdogs.items() if at in folders
        }
        for folder in folders:
            try:
                watchdog = self._watchdogs.get(folder) or ProjectWatchdog(folder)
                self._watchdogs[folder] = watchdog
                reports = list(watchdog.look())
                self._failed.pop(folder, None)
            except RekindleError as error:
                words = str(error)
                is_new, self._failed[folder] = self._failed.get(folder) != words, words
                reports = [WatchReport("-", started=False, words=words)] if is_new else []
            yield from ((folder, report) for report in reports)


def run_daemon_for_all(tell: Tell) -> None:
    """Watch all trusted projects until a signal ends the daemon."""
    lock_file = user_folder.make_user_folder() / "daemon"
    with file_locks.hold_lock(lock_file, 0.0) as lock, Interruption() as interruption:
        if lock is None:
            raise UsageError(
                "the daemon of all projects is already running",
                hint="`rekindle status --all` shows the state of the agents",
            )
        watching = AllProjectsWatchdog()
        export_metrics(trust_checks.list_trusted)
        while not interruption.count:
            for folder, report in watching.look():
                tell(folder, report)
            sleep_until_signal(watching.every, interruption)
