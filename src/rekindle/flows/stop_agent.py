"""Stop an agent: record the operator's command, else deliver it by a signal."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from rekindle.errors import OwnershipError, RekindleError, StopUnrecordedError, StoreError
from rekindle.policy import run as policy
from rekindle.policy.run import Run
from rekindle.stores.files import FileStore
from rekindle.stores.files.supervision import OuterLock


class StopLock:
    """The stop of an agent of which only the lock outside the folder is known."""

    def __init__(self, lock: OuterLock, clock: Callable[[], datetime]) -> None:
        self._lock, self._clock = lock, clock
        self.was_running = False
        self.was_killed = False
        self._is_signalled = False

    def tell(self) -> None:
        self.was_running = self._lock.is_held()
        with suppress(StoreError):  # the signal stops it all the same
            self._lock.note_stop(policy.say(Run(), "stopped", self._clock()))
        self.has_ended()

    def has_ended(self) -> bool:
        self._is_signalled = self._is_signalled or self._lock.signal_holder()
        return not self._lock.is_held()

    def kill(self) -> None:
        self.was_killed = self._lock.kill_holder()


class StopAgent:
    """One stop of one agent of this host.

    If nothing can be written (a full, read-only or failing disk, a folder that is gone or damaged),
    the process that holds the supervisor's lock is told by a signal, and the command is noted
    outside the folder, so that the watchdog does not start the agent again.
    """

    def __init__(self, store: FileStore, agent: str, clock: Callable[[], datetime]) -> None:
        self._store, self._agent, self._clock = store, agent, clock
        self.was_running = False
        self.was_killed = False
        self._unrecorded: RekindleError | None = None
        self._foreign: OwnershipError | None = None
        self._is_noted = False
        self._is_unheard = False
        self._is_signalled = False

    def tell(self) -> None:
        """Give the command, in whichever way works."""
        self.was_running = self._store.is_supervised(self._agent)
        if self.was_running:
            # First: a suspended supervisor may hold a lock that writing the command needs.
            self._store.resume_supervisor(self._agent)
        run = Run()
        try:
            run = self._store.read(self._agent).projection.run
            self._store.submit(self._agent, policy.say(run, "stopped", self._clock()))
        except RekindleError as error:
            if isinstance(error, OwnershipError) and not self.was_running:
                # Said at the end: the agent can write owner.json, and what it left here ends first.
                self._foreign = error
                return
            self._is_unheard = True
            if not self._is_stopped():  # else it is durable, and only not in the log yet
                self._unrecorded = error
                self._note(run)
        self.has_ended()

    def has_ended(self) -> bool:
        """Whether no supervisor lives; one that cannot read the command is sent the signal."""
        if not self._is_supervised():
            return True
        is_unheard = self._is_unheard or self._store.is_deserted(self._agent)
        if is_unheard and not self._is_signalled:
            self._is_signalled = self._store.signal_supervisor(self._agent)
        return False

    def kill(self) -> None:
        """Kill a supervisor that has not ended in time, if it can be identified."""
        self.was_killed = self._store.kill_supervisor(self._agent)

    def require_record(self) -> None:
        """Once it has ended: check that the stop is recorded.

        Raises:
            OwnershipError: The agent lives on another host, which has to stop it.
            StopUnrecordedError: It is not, and the error says where else it is noted.
        """
        if self._foreign is not None:
            raise self._foreign
        error = self._unrecorded
        if error is None or self._is_recorded():
            return
        raise StopUnrecordedError(
            self._agent, str(error), was_running=self.was_running, kept=self._is_noted
        ) from error

    def _is_supervised(self) -> bool:
        try:
            return self._store.is_supervised(self._agent)
        except StoreError:
            # The disk of the project fails; a supervisor also holds the lock outside.
            return self._store.is_held_outside(self._agent)

    def _is_stopped(self) -> bool:
        """Whether readers see the stop, whether it is in the log or not."""
        try:
            return self._store.read(self._agent).projection.run.desired == "stopped"
        except RekindleError:
            return False

    def _is_recorded(self) -> bool:
        """Whether it is in the log: the supervisor may have recorded it when it ended."""
        try:
            return self._store.read(self._agent).committed.run.desired == "stopped"
        except RekindleError:
            return False

    def _note(self, run: Run) -> None:
        command = policy.say(run, "stopped", self._clock())
        with suppress(StoreError):
            self._store.note_stop(self._agent, command)
            self._is_noted = True
