"""Start supervisors in the background, and run the watchdog that restarts them."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.documents import manifest
from rekindle.errors import (
    RekindleError,
    StoreError,
    UsageError,
    translate_os_errors,
)
from rekindle.flows.supervision.watchdog import (
    BriefStarter,
    Watchdog,
    WatchPorts,
    WatchReport,
)
from rekindle.policy.operator.make_notification import make_notice
from rekindle.policy.settings import notify_addresses
from rekindle.policy.setup import environment
from rekindle.policy.supervision.watchdog_table import StartAttempt
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files
from rekindle.system import (
    clock,
    host,
)
from rekindle.system.files import durable_files, file_locks, file_status
from rekindle.system.notifications import Notifier
from rekindle.system.processes import detached_start
from rekindle.system.processes.child_processes import (
    HostProcesses,
    Interruption,
)
from rekindle.system.terminal import tmux
from rekindle.thresholds.screens import WATCH_LAST_BYTES, WATCH_LAST_LINES
from rekindle.wiring import transcript_setup
from rekindle.wiring.access import trust_checks
from rekindle.wiring.agent_routes import select_route_variables
from rekindle.wiring.open_store import (
    open_store,
)

TMUX_SESSION = "rekindle"
FOR_UP = "--for-up"
"""Option for a supervisor started by `up`, which has already recorded the command."""
FOR_WATCHDOG = "--for-watchdog"
"""Option for a supervisor started by a watchdog, which obeys the last command."""


def make_supervisor_command(name: str, *words: str) -> list[str]:
    """Return the command that starts an agent's supervisor."""
    # -P keeps Python from importing modules in the project's folder.
    return [sys.executable, "-P", "-m", "rekindle", "run", name, *words]


def start_supervisor(project: Project, store: FileStore, name: str) -> int:
    """Start a supervisor that outlives this process, with its output in run/output.log."""
    return _start_process(project, store, make_supervisor_command(name, FOR_UP), name, {})


def note_start(store: FileStore, name: str, seq: int) -> None:
    """Record a start, so that no watchdog starts the agent a second time."""
    store.folder(name).write_start_record(
        msgspec.json.encode(StartAttempt(seq, clock.read_clock()))
    )


def start_for_watchdog(project: Project, store: FileStore, name: str) -> str:
    """Start a supervisor for a watchdog, with the operator's saved environment.

    It runs in a tmux window if the operator started it in one, otherwise in the background. Return
    a note about the window, or "".
    """
    argv, variables = (
        make_supervisor_command(name, FOR_WATCHDOG),
        read_environment(project, store, name),
    )
    if not is_in_window(store, name):
        _start_process(project, store, argv, name, variables)
        return ""
    try:
        _open_window(project, name, argv, variables)
    except RekindleError as error:
        if project.manifest.agents[name].mode == "stay":
            raise  # the agent needs a terminal
        _start_process(project, store, argv, name, variables)
        return f"without its tmux window: {error}"
    return "its tmux window was opened again"


def _start_process(
    project: Project, store: FileStore, argv: list[str], name: str, more: dict[str, str]
) -> int:
    folder = store.folder(name)
    folder.make()
    return HostProcesses().start_detached(
        argv,
        environment={**os.environ, **more},
        folder=str(project.path),
        output=folder.output,
    )


def start_briefs(project: Project, store: FileStore) -> None:
    """Start a process that writes the due briefs and outlives this process."""
    store.root.make()
    HostProcesses().start_detached(
        [sys.executable, "-P", "-m", "rekindle", "brief", "--due"],
        environment=os.environ,
        folder=str(project.path),
        output=store.root.path / "briefs.log",
    )


def start_in_tmux(project: Project, name: str) -> int:
    """Start a supervisor in a tmux window that the operator can attach to."""
    return _open_window(project, name, make_supervisor_command(name, FOR_UP), {})


def _open_window(project: Project, name: str, argv: list[str], more: dict[str, str]) -> int:
    environ = {**_select_variables(project, name), **more}
    return tmux.open_window(TMUX_SESSION, name, str(project.path), argv, environ)


def note_window(store: FileStore, name: str, *, is_wanted: bool) -> None:
    """Record whether a watchdog should start the agent in a tmux window."""
    store.open_private(name)
    if (private := store.folder(name).private) is None:
        return
    if is_wanted:
        durable_files.replace_file(private.window, b"")
    else:
        with translate_os_errors(private.window):
            private.window.unlink(missing_ok=True)


def is_in_window(store: FileStore, name: str) -> bool:
    """Return whether the operator started the agent's supervisor in a tmux window."""
    private = store.folder(name).private
    return private is not None and durable_files.path_exists(private.window)


def keep_last_words(store: FileStore, name: str, words: str) -> None:
    """Save the reason why a supervisor in a tmux window exits, because the window will close."""
    with suppress(OSError, StoreError):
        fd = detached_start.open_output(store.folder(name).output)
        try:
            os.write(fd, f"{words}\n".encode("utf-8", "replace"))
        finally:
            os.close(fd)


def render_attach_hint() -> str:
    """Return the shell command that shows the agents' windows."""
    return tmux.render_attach_command(TMUX_SESSION)


def _select_variables(project: Project, name: str) -> dict[str, str]:
    """Return the variables for a supervisor in a window: the agent's and those in `notify:`."""
    entry = project.manifest.agents[name]
    own = [value.removeprefix("$") for value in (entry.env or {}).values()]
    for address in trust_checks.find_accepted_notify(project, name):
        own += notify_addresses.name_variables(address)
    named = {key: os.environ[key] for key in own if key in os.environ}
    passed = select_route_variables(project, name, os.environ)
    # tmux sets the terminal variables itself.
    ours = {key: value for key, value in passed.items() if key not in {"TERM", "COLORTERM"}}
    return {**ours, **named}


def remember_environment(store: FileStore, project: Project, name: str) -> None:
    """Save the operator's environment, because cron and services start with a nearly empty one.

    Variables that may be secret are left out. A key, for example, must be passed to the service
    itself.
    """
    passed = select_route_variables(project, name, os.environ)
    variables = environment.drop_secret_variables(passed)
    store.open_private(name)
    if (private := store.folder(name).private) is not None:
        durable_files.replace_file(private.environment, msgspec.json.encode(variables))


def has_environment(store: FileStore, name: str) -> bool:
    """Return whether an environment is saved. A replica never needs one."""
    private = store.folder(name).private
    return private is None or durable_files.path_exists(private.environment)


def read_environment(project: Project, store: FileStore, name: str) -> dict[str, str]:
    """Return the saved environment, filtered by the current rules."""
    private = store.folder(name).private
    data = durable_files.read_bytes(private.environment) if private else None
    if not data:
        return {}
    try:
        saved = msgspec.json.decode(data, type=dict[str, str])
    except msgspec.MsgspecError:
        return {}
    passed = select_route_variables(project, name, saved)
    return environment.drop_secret_variables(passed)


def watch_once(project: Project, store: FileStore) -> list[WatchReport]:
    return _watch_trusted(project, store, _make_watchdog(project, store))


def _watch_trusted(project: Project, store: FileStore, watching: Watchdog) -> list[WatchReport]:
    """Start the due runs and have the watchdog check the agents, if the folder is trusted."""
    names = project.declared_agents
    if trust_checks.is_trusted(project.path):
        # A due agent has no supervisor yet. The watchdog starts it like any missing supervisor.
        due = _start_due_runs(project, store)
        return [*due, *watching.look(names), *_watch_runs(project)]
    words = "this folder is not trusted: `rekindle run` shows what it would start, and asks you"
    return [WatchReport(name, started=False, words=words) for name in names]


def _start_due_runs(project: Project, store: FileStore) -> list[WatchReport]:
    from rekindle.wiring.schedules import project_schedules  # noqa: PLC0415 - circular import

    try:
        return project_schedules.start_due_runs(project, store)
    except RekindleError as error:
        return [WatchReport("schedules", started=False, words=str(error))]


def _watch_runs(project: Project) -> list[WatchReport]:
    """Start the missing coordinators of pipelines, which watch their own workers."""
    if not private_files.find_private_project(project.path).pipelines.exists():
        return []
    from rekindle.wiring.pipelines import start_run  # noqa: PLC0415 - circular import

    return start_run.start_missing_coordinators(project)


def watch_workers(project: Project, store: FileStore, names: Sequence[str]) -> None:
    """Start the missing supervisors of a run's workers. Workers do not get briefs."""
    if trust_checks.is_trusted(project.path):
        _make_watchdog(project, store, writes_briefs=False).look(names)


def _make_watchdog(project: Project, store: FileStore, *, writes_briefs: bool = True) -> Watchdog:
    staying = {name for name, entry in project.manifest.agents.items() if entry.mode == "stay"}

    def send_notice(name: str, words: str) -> list[str]:
        notifier = Notifier(trust_checks.find_accepted_notify(project, name), store.redaction)
        where = {"project": project.path.name, "host": host.name()}
        notice = make_notice(name, "does not come up", words, **where)
        return notifier.send(notice.title, notice.body, notice.severity)

    around = WatchPorts(
        start=lambda name: start_for_watchdog(project, store, name),
        in_window=lambda name: is_in_window(store, name),
        last_words=lambda name: read_last_words(store, name),
        notify=send_notice,
        clock=clock.read_clock,
        archive=lambda name: transcript_setup.archive_agent(project, store, name),
        limits=project.settings.runtime.restart,
        briefs=BriefStarter(
            start=lambda: start_briefs(project, store),
            zone=clock.find_zone(project.settings.runtime.brief.zone),
            limits=project.settings.runtime.brief,
        )
        if writes_briefs
        else None,
    )
    return Watchdog(store, around, staying)


def prepare_output(store: FileStore, name: str) -> int:
    """Truncate the output file if it is too long, and return its size.

    Call this before the next supervisor starts, because its output begins at that size.
    """
    os.close(detached_start.open_output(store.folder(name).output))
    return measure_output(store, name)


def measure_output(store: FileStore, name: str) -> int:
    """Return the size of the output file in bytes."""
    stamp = file_status.make_file_stamp(store.folder(name).output)
    return stamp[0] if stamp else 0


def read_last_words(store: FileStore, name: str, since: int = 0) -> str:
    """Return the last lines of output after the offset `since`."""
    output = store.folder(name).output
    new = measure_output(store, name) - since
    # `new` is negative if the file was truncated for a new supervisor.
    most = WATCH_LAST_BYTES if new < 0 else min(new, WATCH_LAST_BYTES)
    try:
        words = durable_files.read_last_bytes(output, most) or b""
    except StoreError:
        words = b""
    lines = words.decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-WATCH_LAST_LINES:]) or "its supervisor printed nothing"


class ProjectWatchdog:
    """Watches one project's agents, and remembers what it has reported."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stamp = folder, _make_stamp(folder)
        self._project = config.load_project(folder)
        self._store = open_store(self._project)
        self._watching = _make_watchdog(self._project, self._store)
        self._told: dict[str, WatchReport] = {}

    @property
    def every(self) -> float:
        """Seconds between two checks."""
        return self._project.settings.runtime.watch.interval

    def look(self) -> Iterator[WatchReport]:
        """Check all agents once, and yield new reports."""
        changed = _make_stamp(self._folder)
        if changed != self._stamp:
            self._stamp = changed
            try:
                self._project = config.load_project(self._folder)
            except RekindleError as error:
                # The manifest may be in the middle of an edit, so use the last readable version.
                yield WatchReport(manifest.MANIFEST_FILE, started=False, words=str(error))
            else:
                self._store = open_store(self._project)
                self._watching = _make_watchdog(self._project, self._store)
        refusal = self._refuse_fleet()
        if not refusal:
            self._told.pop(manifest.MANIFEST_FILE, None)
        # In a fleet, the hosts restart the agents.
        has_fleet = self._project.settings.fleet is not None
        reports = (
            refusal if has_fleet else _watch_trusted(self._project, self._store, self._watching)
        )
        for report in reports:
            if report.started or self._told.get(report.agent) != report:
                yield report
            self._told[report.agent] = report

    def _refuse_fleet(self) -> list[WatchReport]:
        """Return a report if the operator has not accepted the fleet, or an empty list."""
        if self._project.settings.fleet is None:
            return []
        try:
            trust_checks.require_fleet(self._project)
        except RekindleError as error:
            return [WatchReport(manifest.MANIFEST_FILE, started=False, words=str(error))]
        return []


def run_daemon(folder: Path, tell: Callable[[WatchReport], None]) -> None:
    """Watch one project until a signal ends the daemon."""
    from rekindle.wiring.starting.metrics_export import export_metrics  # noqa: PLC0415 - has an HTTP server

    project = config.load_project(folder)
    root = open_store(project).root
    root.make()
    with file_locks.hold_lock(root.path / "daemon", 0.0) as lock, Interruption() as interruption:
        if lock is None:
            raise UsageError(
                "the daemon of this project is already running",
                hint="`rekindle status` shows the state of the agents",
            )
        watchdog = ProjectWatchdog(project.path)
        export_metrics(lambda: [project.path])
        while not interruption.count:
            for report in watchdog.look():
                tell(report)
            sleep_until_signal(watchdog.every, interruption)


def sleep_until_signal(seconds: float, interruption: Interruption) -> None:
    until = time.monotonic() + seconds
    while not interruption.count and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))


def _make_stamp(folder: Path) -> object:
    """Return a value that changes with the manifest."""
    return file_status.make_file_stamp(folder / manifest.MANIFEST_FILE)
