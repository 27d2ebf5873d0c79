"""Supervisors in the background, and who looks after them."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.documents import manifest
from rekindle.errors import RekindleError, StoreError, UsageError, storing
from rekindle.flows.watch_agents import Around, Briefs, Looked, WatchAgents
from rekindle.policy import addresses, environment
from rekindle.policy.notices import make_notice
from rekindle.policy.watch import Tried
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.system import clock, detached, disk, host, tmux
from rekindle.system.notify import Notifier
from rekindle.system.processes import Interruption, Processes
from rekindle.thresholds.screens import (
    WATCH_LAST_BYTES,
    WATCH_LAST_LINES,
    WATCH_LEAST_SECONDS,
    WATCH_MOST_SECONDS,
)
from rekindle.wiring import transcripts, trust
from rekindle.wiring.store import HARNESSES, open_store

TMUX_SESSION = "rekindle"
SAID = "--said"
"""The option of a supervisor whose operator's word stands in the log already."""


def supervisor(name: str, *words: str) -> list[str]:
    """The command that runs an agent."""
    # -P: nothing in the project's folder is a module of ours.
    return [sys.executable, "-P", "-m", "rekindle", "run", name, *words]


def start(project: Project, store: FileStore, name: str) -> int:
    """Start a supervisor that goes on without us; its words go to run/output.log."""
    return _start(project, store, supervisor(name, SAID), name, {})


def note_start(store: FileStore, name: str, seq: int) -> None:
    """Have watchdogs leave it alone while it comes up, if the log is then as far as `seq`."""
    store.folder(name).note_started(msgspec.json.encode(Tried(seq, clock.now())))


def start_kept(project: Project, store: FileStore, name: str) -> str:
    """Start a supervisor for a watchdog, with what the operator's environment was.

    Where the operator had it: in a tmux window or in the background. Returns where, in words;
    empty: in the background, as before.
    """
    argv, kept = supervisor(name, "--kept"), remembered(project, store, name)
    if not is_in_window(store, name):
        _start(project, store, argv, name, kept)
        return ""
    try:
        _open_window(project, name, argv, kept)
    except RekindleError as error:
        if project.manifest.agents[name].mode == "stay":
            raise  # it needs a terminal
        _start(project, store, argv, name, kept)
        return f"without its tmux window: {error}"
    return "its tmux window is opened again"


def _start(
    project: Project, store: FileStore, argv: list[str], name: str, more: dict[str, str]
) -> int:
    folder = store.folder(name)
    folder.make()
    return Processes().start_detached(
        argv,
        environment={**os.environ, **more},
        folder=str(project.path),
        output=folder.output,
    )


def start_briefs(project: Project, store: FileStore) -> None:
    """Have the briefs written that are due, by a process that goes on without us."""
    store.root.make()
    Processes().start_detached(
        [sys.executable, "-P", "-m", "rekindle", "brief", "--due"],
        environment=os.environ,
        folder=str(project.path),
        output=store.root.path / "briefs.log",
    )


def start_in_tmux(project: Project, name: str) -> int:
    """Start a supervisor in a window of our tmux session, for the operator to attach to."""
    return _open_window(project, name, supervisor(name, SAID), {})


def _open_window(project: Project, name: str, argv: list[str], more: dict[str, str]) -> int:
    environ = {**_given(project, name), **more}
    return tmux.new_window(TMUX_SESSION, name, str(project.path), argv, environ)


def note_window(store: FileStore, name: str, *, is_wanted: bool) -> None:
    """Record whether a watchdog starts the agent in a tmux window; outside the workspace."""
    store.open_private(name)
    if (private := store.folder(name).private) is None:
        return
    if is_wanted:
        disk.replace(private.window, b"")
    else:
        with storing(private.window):
            private.window.unlink(missing_ok=True)


def is_in_window(store: FileStore, name: str) -> bool:
    """Return whether the operator had the agent's supervisor in a tmux window."""
    private = store.folder(name).private
    return private is not None and disk.exists(private.window)


def keep_last_words(store: FileStore, name: str, words: str) -> None:
    """Keep why a supervisor in a window exits: the window is closed with it."""
    with suppress(OSError, StoreError):
        fd = detached.open_output(store.folder(name).output)
        try:
            os.write(fd, f"{words}\n".encode("utf-8", "replace"))
        finally:
            os.close(fd)


def attach_command() -> str:
    """Return what a person types in a shell to see the agents' windows."""
    return tmux.attach_command(TMUX_SESSION)


def _given(project: Project, name: str) -> dict[str, str]:
    """Return what a supervisor in a window needs: the agent's variables, and those of `notify:`."""
    entry = project.manifest.agents[name]
    harness = HARNESSES.get(entry.harness)
    own = [value.removeprefix("$") for value in (entry.env or {}).values()]
    for address in trust.accepted_notify(project, name):
        own += addresses.name_variables(address)
    named = {key: os.environ[key] for key in own if key in os.environ}
    passed, never = (harness.PASSED_ON, harness.NEVER_PASSED_ON) if harness else ((), ())
    # The window's terminal is tmux's own.
    return {**environment.allowed(os.environ, passed, (*never, "TERM", "COLORTERM")), **named}


def remember(store: FileStore, name: str, harness: Harness) -> None:
    """Keep what the operator's environment was: that of cron, or of a service, is nearly empty.

    Nothing that could be a secret: who logs in by a variable gives it to the service.
    """
    passed = environment.allowed(os.environ, harness.PASSED_ON, harness.NEVER_PASSED_ON)
    kept = environment.without_secrets(passed)
    store.open_private(name)
    if (private := store.folder(name).private) is not None:
        disk.replace(private.environment, msgspec.json.encode(kept))


def has_remembered(store: FileStore, name: str) -> bool:
    """Whether an operator's environment is kept; a replica has none, and is given none."""
    private = store.folder(name).private
    return private is None or disk.exists(private.environment)


def remembered(project: Project, store: FileStore, name: str) -> dict[str, str]:
    """Return the environment that was kept, held to the same rules as when it was."""
    private = store.folder(name).private
    harness = HARNESSES.get(project.manifest.agents[name].harness)
    data = disk.read(private.environment) if private else None
    if not data or harness is None:
        return {}
    try:
        kept = msgspec.json.decode(data, type=dict[str, str])
    except msgspec.MsgspecError:
        return {}
    passed = environment.allowed(kept, harness.PASSED_ON, harness.NEVER_PASSED_ON)
    return environment.without_secrets(passed)


def look_once(project: Project, store: FileStore) -> list[Looked]:
    return _look(project, _watching(project, store))


def _look(project: Project, watching: WatchAgents) -> list[Looked]:
    """Look after the agents, unless the folder is one that the user has not accepted."""
    names = list(project.manifest.agents)
    if trust.is_trusted(project.path):
        return watching.look(names)
    words = "this folder is not trusted: `rekindle run` shows what it would start, and asks"
    return [Looked(name, started=False, words=words) for name in names]


def _watching(project: Project, store: FileStore) -> WatchAgents:
    staying = {name for name, one in project.manifest.agents.items() if one.mode == "stay"}

    def notify(name: str, words: str) -> list[str]:
        notifier = Notifier(trust.accepted_notify(project, name), store.redaction)
        where = {"project": project.path.name, "host": host.name()}
        notice = make_notice(name, "does not come up", words, **where, severity="failure")
        return notifier.send(notice.title, notice.body, notice.severity)

    around = Around(
        start=lambda name: start_kept(project, store, name),
        in_window=lambda name: is_in_window(store, name),
        last_words=lambda name: last_words(store, name),
        notify=notify,
        clock=clock.now,
        archive=lambda name: transcripts.archive(project, store, name),
        limits=project.settings.runtime.restart,
        briefs=Briefs(
            start=lambda: start_briefs(project, store),
            zone=clock.zone(project.settings.runtime.brief.zone),
            limits=project.settings.runtime.brief,
        ),
    )
    return WatchAgents(store, around, staying)


def output_size(store: FileStore, name: str) -> int:
    """Return how much supervisors in the background have written so far."""
    found = disk.stamp(store.folder(name).output)
    return found[0] if found else 0


def last_words(store: FileStore, name: str, since: int = 0) -> str:
    """Return the last lines of a supervisor in the background, of those written after `since`."""
    output = store.folder(name).output
    new = output_size(store, name) - since
    # Shorter than before: the file was cut when the supervisor was started.
    most = WATCH_LAST_BYTES if new < 0 else min(new, WATCH_LAST_BYTES)
    try:
        words = disk.read_end(output, most) or b""
    except StoreError:
        words = b""
    lines = words.decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-WATCH_LAST_LINES:]) or "its supervisor said nothing"


class Watchdog:
    """Looks after the agents of one project, and remembers what it has reported."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stamp = folder, _stamp(folder)
        self._project = config.load(folder)
        self._watching = _watching(self._project, open_store(self._project))
        self._told: dict[str, Looked] = {}

    @property
    def every(self) -> float:
        """Seconds between two looks; bounded, because an agent can write the setting."""
        written = self._project.settings.runtime.watch.every
        return min(max(written, WATCH_LEAST_SECONDS), WATCH_MOST_SECONDS)

    def look(self) -> Iterator[Looked]:
        """Look once; yield what is new since the last look."""
        changed = _stamp(self._folder)
        if changed != self._stamp:
            self._stamp = changed
            try:
                self._project = config.load(self._folder)
            except RekindleError as error:
                # Someone is writing it: until it can be read, what it said before counts.
                yield Looked(manifest.FILE, started=False, words=str(error))
            else:
                self._watching = _watching(self._project, open_store(self._project))
        refusal = self._refuse_fleet()
        if not refusal:
            self._told.pop(manifest.FILE, None)
        # The hosts of a fleet keep its agents.
        has_fleet = self._project.settings.fleet is not None
        for found in refusal if has_fleet else _look(self._project, self._watching):
            if found.started or self._told.get(found.agent) != found:
                yield found
            self._told[found.agent] = found

    def _refuse_fleet(self) -> list[Looked]:
        """Return why a fleet that the operator has not accepted is not followed."""
        if self._project.settings.fleet is None:
            return []
        try:
            trust.require_fleet(self._project)
        except RekindleError as error:
            return [Looked(manifest.FILE, started=False, words=str(error))]
        return []


def keep_looking(folder: Path, tell: Callable[[Looked], None]) -> None:
    """Look after one project, again and again, until a signal ends the daemon."""
    project = config.load(folder)
    root = open_store(project).root
    root.make()
    with disk.locked(root.path / "daemon", 0.0) as lock, Interruption() as interruption:
        if lock is None:
            raise UsageError(
                "the daemon of this project runs already",
                hint="`rekindle status` shows how the agents are",
            )
        watchdog = Watchdog(project.path)
        while not interruption.count:
            for found in watchdog.look():
                tell(found)
            rest(watchdog.every, interruption)


def rest(seconds: float, interruption: Interruption) -> None:
    until = time.monotonic() + seconds
    while not interruption.count and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))


def _stamp(folder: Path) -> object:
    """Whether the manifest is still the one that was read."""
    return disk.stamp(folder / manifest.FILE)
