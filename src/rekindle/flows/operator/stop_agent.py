"""Stop an agent by recording a command or, if that fails, by sending a signal."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from rekindle.errors import OwnershipError, RekindleError, StopUnrecordedError, StoreError
from rekindle.policy.supervision import run_moves as policy
from rekindle.policy.supervision.run_moves import RunState
from rekindle.stores.files import FileStore
from rekindle.stores.files.supervisor_locks import OuterLock


class LockStopper:
    """Stops an agent whose folder is gone, using the lock outside the folder."""

    def __init__(self, lock: OuterLock, clock: Callable[[], datetime]) -> None:
        self._lock, self._clock = lock, clock
        self.was_running = False
        self.was_killed = False
        self._is_signalled = False

    def tell(self) -> None:
        self.was_running = self._lock.is_held()
        with suppress(StoreError):  # the signal alone is enough to stop the agent
            self._lock.note_stop(policy.make_desired_event(RunState(), "stopped", self._clock()))
        self.has_ended()

    def has_ended(self) -> bool:
        self._is_signalled = self._is_signalled or self._lock.signal_holder()
        return not self._lock.is_held()

    def kill(self) -> None:
        self.was_killed = self._lock.kill_holder()


class AgentStopper:
    """Stops one agent on this host.

    If the folder cannot be written (disk full or failing, folder missing or damaged), the stopper
    sends a signal to the process that holds the supervisor's lock. It also records the command
    outside the folder, so that the watchdog does not restart the agent.
    """

    def __init__(self, store: FileStore, agent: str, clock: Callable[[], datetime]) -> None:
        self._store, self._agent, self._clock = store, agent, clock
        self.was_running = False
        self.was_killed = False
        self._unrecorded: RekindleError | None = None
        self._foreign: OwnershipError | None = None
        self._is_stop_noted = False
        self._is_command_unread = False
        self._is_signalled = False

    def tell(self) -> None:
        """Send the stop command by the first method that works."""
        self.was_running = self._store.is_supervised(self._agent)
        if self.was_running:
            # A suspended supervisor may hold the lock that is needed to record the command.
            self._store.resume_supervisor(self._agent)
        run = RunState()
        try:
            run = self._store.read(self._agent).projection.run
            self._store.submit(
                self._agent, policy.make_desired_event(run, "stopped", self._clock())
            )
        except RekindleError as error:
            if isinstance(error, OwnershipError) and not self.was_running:
                # End local processes before raising this: owner.json may be wrong, because the
                # agent can write it.
                self._foreign = error
                return
            self._is_command_unread = True
            if not self._is_stopped():  # otherwise the command is in the inbox
                self._unrecorded = error
                self._note_stop(run)
        self.has_ended()

    def has_ended(self) -> bool:
        """Return whether the supervisor has exited. Send a signal if it cannot read the command."""
        if not self._is_supervised():
            return True
        is_unheard = self._is_command_unread or self._store.has_lost_folder(self._agent)
        if is_unheard and not self._is_signalled:
            self._is_signalled = self._store.signal_supervisor(self._agent)
        return False

    def kill(self) -> None:
        """Kill a supervisor that has not exited in time, if it can be identified."""
        self.was_killed = self._store.kill_supervisor(self._agent)

    def require_stop_record(self) -> None:
        """Check that the stop is recorded. Call this after the agent has ended.

        Raises:
          OwnershipError: The agent belongs to another host, which has to stop it.
          StopUnrecordedError: The stop is not in the log. The error names where else it is
              recorded.
        """
        if self._foreign is not None:
            raise self._foreign
        error = self._unrecorded
        if error is None or self._is_recorded():
            return
        raise StopUnrecordedError(
            self._agent, str(error), was_running=self.was_running, kept=self._is_stop_noted
        ) from error

    def _is_supervised(self) -> bool:
        try:
            return self._store.is_supervised(self._agent)
        except StoreError:
            # The project's disk is failing, but a supervisor also holds a lock outside the project.
            return self._store.is_outer_lock_held(self._agent)

    def _is_stopped(self) -> bool:
        """Return whether the stop command is recorded, at least in the inbox."""
        try:
            return self._store.read(self._agent).projection.run.desired == "stopped"
        except RekindleError:
            return False

    def _is_recorded(self) -> bool:
        """Return whether the stop is in the log. The supervisor may have recorded it on exit."""
        try:
            return self._store.read(self._agent).committed.run.desired == "stopped"
        except RekindleError:
            return False

    def _note_stop(self, run: RunState) -> None:
        command = policy.make_desired_event(run, "stopped", self._clock())
        with suppress(StoreError):
            self._store.note_stop(self._agent, command)
            self._is_stop_noted = True
