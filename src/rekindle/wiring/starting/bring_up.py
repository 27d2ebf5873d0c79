"""Start several agents: check and start all of them, then report the state of each.

Each agent has a generator that yields while it waits, so no agent delays another.
"""

import time
from collections.abc import Callable, Generator, Sequence

import msgspec

from rekindle.config import Project
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import AgentError, RekindleError
from rekindle.flows.operator.read_rows import (
    RowReader,
    RowReading,
)
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.settings.runtime_settings import find_cycle_limit
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.system.processes import launch_processes
from rekindle.thresholds.screens import (
    UP_ENDING_SECONDS,
    UP_POLL_SECONDS,
    UP_SECONDS,
    UP_SETTLE_SECONDS,
)
from rekindle.wiring.starting import background_start

_STOPPED_MEANWHILE = "was stopped in the meantime, and stays stopped"
_Waiting = Generator[None, None, str]
"""Generator that yields while it waits for an agent, and returns the agent's state."""


class StartResult(msgspec.Struct, frozen=True):
    """The result of `up` for one agent."""

    agent: str
    state: str = ""
    error: str = ""
    """Reason why the agent was not started; empty if it is running or has finished."""
    hint: str = ""
    """Hint for fixing the error."""


class AgentStarter:
    """Starts several of a project's agents together."""

    def __init__(
        self,
        project: Project,
        store: FileStore,
        accept: Callable[[str], None],
        *,
        tmux: bool = False,
        unbounded: bool = False,
        cycles: int | None = None,
    ) -> None:
        """Create a starter. `accept` checks an agent and accepts its settings.

        `cycles` replaces the number of cycles in the manifest.
        """
        self._project, self._store, self._accept = project, store, accept
        self._tmux, self._unbounded, self._cycles = tmux, unbounded, cycles
        self._rows = RowReader(
            store, project.manifest.agents, project.settings.runtime, clock.read_clock
        )

    def bring_up(self, names: Sequence[str]) -> list[StartResult]:
        """Start all agents, and return the state of each as soon as it is known."""
        waiting = {name: self._bring_up(name) for name in names}
        results: dict[str, StartResult] = {}
        while waiting:
            for name, steps in list(waiting.items()):
                try:
                    next(steps)
                except StopIteration as end:
                    results[name] = StartResult(name, state=end.value)
                except RekindleError as error:
                    results[name] = StartResult(name, error=str(error), hint=error.hint or "")
                if name in results:
                    del waiting[name]
            if waiting:
                time.sleep(UP_POLL_SECONDS)
        return [results[name] for name in names]

    def _bring_up(self, name: str) -> _Waiting:
        store = self._store
        # If the folder was deleted or replaced, wait for the old supervisor to exit.
        yield from _wait_until(lambda: not store.has_lost_folder(name))
        self._accept(name)
        if store.is_supervised(name):
            stop = store.read(name).projection.run
            if stop.desired != "stopped":
                return _explain_row(self._rows.row(name)) or "is already running"
            yield from _wait_until(lambda: not store.is_supervised(name))
            if store.read(name).projection.run.command != stop.command:
                return _STOPPED_MEANWHILE
        before, pid, said_before = self._start_supervisor(name)
        yield
        return (yield from self._wait_for_state(name, before, pid, said_before))

    def _start_supervisor(self, name: str) -> tuple[int, int, int]:
        """Start a supervisor. Return the last event before it, its pid, and the output size."""
        project, store = self._project, self._store
        # Record the operator's command here rather than in the supervisor, so that a command given
        # during the start overrides it. Record the start first. Otherwise, a watchdog could start
        # another supervisor.
        current = store.read(name)
        background_start.note_start(store, name, current.committed.seq + len(current.pending) + 1)
        cycles = self._cycles
        if cycles is None:
            cycles = find_cycle_limit(project.manifest.agents[name])
        run, now = current.projection.run, clock.read_clock()
        store.submit(
            name, policy.make_desired_event(run, "running", now, cycles, unbounded=self._unbounded)
        )
        before = store.read(name).committed.seq
        said_before = background_start.prepare_output(store, name)
        background_start.note_window(store, name, is_wanted=self._tmux)
        if self._tmux:
            return before, background_start.start_in_tmux(project, name), said_before
        return before, background_start.start_supervisor(project, store, name), said_before

    def _wait_for_state(self, name: str, before: int, pid: int, said_before: int) -> _Waiting:
        """Wait until the agent is running, waiting or stopped, or until its run is over.

        After a launch ends, the state is unknown until the next step is recorded.
        """
        deadline = time.monotonic() + UP_SECONDS
        alive_seconds, looked_at = 0.0, time.monotonic()
        while True:
            is_gone = not launch_processes.is_alive(str(pid))
            reading = self._rows.read(name)
            state = self._describe_state(name, reading, before)
            if state:
                return state
            if is_gone and not reading.is_supervised:
                break
            since, looked_at = time.monotonic() - looked_at, time.monotonic()
            if reading.is_supervised and _has_live_launch(reading, before):
                # A program that cannot be started fails immediately.
                alive_seconds += since
                if alive_seconds > UP_SETTLE_SECONDS:
                    return _append_failure(reading, before)
            if time.monotonic() > deadline:
                break
            yield
        if _list_launches(reading, before):
            return _append_failure(reading, before)
        words = _find_failure(reading, before) or background_start.read_last_words(
            self._store, name, said_before
        )
        raise AgentError(words)

    def _describe_state(self, name: str, reading: RowReading, before: int) -> str:
        """Return the state of an agent that is waiting, stopped or finished, or ""."""
        if reading.view is None:
            raise AgentError(reading.row.reason, hint=reading.row.command)
        run, launches = reading.view.projection.run, _list_launches(reading, before)
        if run.desired == "stopped" and not reading.is_supervised:
            return _STOPPED_MEANWHILE
        words = _explain_row(reading.row)
        if run.is_over and reading.view.committed.seq > before:
            return f"started, and {_explain_end(run)}"
        if not reading.is_supervised or not words:
            return ""
        if launches:
            return f"started; {words}"
        # The supervisor removes the start record when it waits, so it will not start the agent now.
        return words if self._store.folder(name).read_start_record() is None else ""


def _explain_row(row: AgentRow) -> str:
    """Return why a supervised agent is not working and what to do, or ""."""
    if row.state == "running":
        return ""
    return f"{row.label}: {row.reason}" + (f"; next: `{row.command}`" if row.command else "")


def _explain_end(run: policy.RunState) -> str:
    """Return how a run ended, even if its supervisor is still exiting."""
    outcome = stop_reasons.find_outcome(run.ended.why)
    if outcome.state == "done":
        return outcome.words
    return f"{outcome.words}: {explain_reasons.explain_reason(run.ended.why, run.ended.words)}"


def _list_launches(reading: RowReading, before: int) -> list[str]:
    """Return the failure of each launch since `before`, or "" if it is running or succeeded."""
    attempts = reading.view.projection.attempts.values() if reading.view else ()
    ends = [
        (attempt.seq, "" if attempt.exit in {"", "clean"} else attempt.words)
        for attempt in attempts
    ]
    return [words for seq, words in ends if seq > before]


def _has_live_launch(reading: RowReading, before: int) -> bool:
    """Return whether a launch since `before` is still running."""
    attempts = reading.view.projection.attempts.values() if reading.view else ()
    return any(attempt.seq > before and not attempt.exit for attempt in attempts)


def _find_failure(reading: RowReading, before: int) -> str:
    return next((words for words in reversed(_list_launches(reading, before)) if words), "")


def _append_failure(reading: RowReading, before: int) -> str:
    failure = _find_failure(reading, before)
    return f"started; {failure}" if failure else "started"


def _wait_until(has_ended: Callable[[], bool]) -> Generator[None, None, None]:
    """Yield until a supervisor has exited or the timeout has passed."""
    deadline = time.monotonic() + UP_ENDING_SECONDS
    while not has_ended() and time.monotonic() < deadline:
        yield
