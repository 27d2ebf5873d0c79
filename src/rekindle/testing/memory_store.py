"""An in-memory store, for supervisor tests that simulate years without a disk.

It follows the same policy as the file store: a log that the real fold processes, an inbox that
readers see on top of the log, one writer, one supervisor, and the markers of the run folder. It
does not simulate torn or edited files: use the real store in a folder for those. A test of a full
disk, or of a supervisor that is killed during a write, overrides `MemoryStore.commit`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents.events import (
    AgentCreated,
    AnyEvent,
    DesiredSet,
    QuestionAnswered,
)
from rekindle.documents.launches.background_record import BackgroundRecord
from rekindle.errors import BusyError, SupervisedError
from rekindle.policy.operator import answers
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.hook_reports import is_repeated, make_report_key
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS

_PRUNE_EVERY = 64
"""Number of events between two prunings of old state, as a snapshot would do."""


class MemoryMarker:
    """A marker file that either exists or does not."""

    def __init__(self) -> None:
        self.text: str | None = None

    def exists(self) -> bool:
        return self.text is not None

    def unlink(self, *, missing_ok: bool = False) -> None:
        if self.text is None and not missing_ok:
            raise FileNotFoundError
        self.text = None


class MemoryBrakes:
    """Brake files that no hook reads."""

    def rule(self, *_names: str) -> MemoryMarker:
        return MemoryMarker()

    braked = taken = notice = told = rule

    def forget(self) -> None:
        pass


class MemoryFolder:
    """The parts of an agent's folder that a supervisor uses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / "run"
        self.state = path / "state.json"
        self.transcripts = path / "transcripts"
        self.clean_exit = MemoryMarker()
        self.fresh = MemoryMarker()
        self.writes = 0
        self._started: bytes | None = None

    def stamp(self) -> int:
        """Return a number that changes with every write to the log or the inbox."""
        return self.writes

    def document(self, name: str) -> Path:
        return self.path / f"{name}.md"

    def read_clean_exit(self) -> str | None:
        return self.clean_exit.text

    def read_start_record(self) -> bytes | None:
        return self._started

    def write_start_record(self, said: bytes) -> None:
        self._started = said

    def remove_start_record(self) -> None:
        self._started = None

    def brakes(self, _scratch: str, _marks: str = "") -> MemoryBrakes:
        return MemoryBrakes()

    def remove(self, marker: MemoryMarker) -> None:
        marker.unlink(missing_ok=True)

    def request_fresh_session(self) -> None:
        self.fresh.text = ""

    def write_clean_exit(self, seq: int, outcome: str) -> None:
        self.clean_exit.text = f"{seq} {outcome}\n"


class MemoryView(msgspec.Struct, frozen=True):
    """The state of an agent, as a reader sees it."""

    committed: Projection
    """Projection of the log alone."""
    pending: tuple[AnyEvent, ...] = ()
    """Records in the inbox: acknowledged, but not folded yet."""
    proposed: None = None
    """Relays are never waiting to be committed."""
    unreadable: int = 0
    """Number of unreadable records, which a store in memory never has."""
    condition: str = "sealed"
    is_tampered: bool = False

    @property
    def end(self) -> int:
        """Return the position of the end of the log, which is the number of its last event."""
        return self.committed.seq

    @property
    def projection(self) -> Projection:
        """Return the projection of the log with the inbox."""
        return fold_events(self.committed, self.pending) if self.pending else self.committed


class MemoryWriter:
    """The only writer for an agent, as long as it is open."""

    def __init__(self, store: "MemoryStore", agent: str) -> None:
        self._store, self._agent = store, agent

    @property
    def projection(self) -> Projection:
        return self._store.read(self._agent).committed

    def fold(self, *also: AnyEvent) -> None:
        """Move the records in the inbox to the log, and append `also`."""
        pending = self._store.inbox.get(self._agent)
        if any(isinstance(one, QuestionAnswered) for one in pending or ()):
            for one in list(pending or ()):  # an answer is checked against all earlier records
                self._store.commit(
                    self._agent, self._stamp_events(self._judge_answer(one)), folded=1
                )
        elif pending:
            self._store.commit(
                self._agent, self._stamp_events(self._drop_repeated(pending)), folded=len(pending)
            )
        self.append(*also)

    def _judge_answer(self, one: AnyEvent) -> list[AnyEvent]:
        if isinstance(one, QuestionAnswered):
            return [answers.judge_answer(self.projection, one, self._store.clock())]
        return self._drop_repeated([one])

    def _drop_repeated(self, pending: Sequence[AnyEvent]) -> list[AnyEvent]:
        """Return the records without duplicates, which hooks that are installed twice report."""
        seen = dict(self.projection.seen)
        new: list[AnyEvent] = []
        for one in pending:
            if not is_repeated(seen, one):
                new.append(one)
                if key := make_report_key(one):
                    seen[key] = one.ts
        return new

    def append(self, *new: AnyEvent) -> None:
        """Add events to the log."""
        if new:
            self._store.commit(self._agent, self._stamp_events(new))

    def _stamp_events(self, new: Sequence[AnyEvent]) -> list[AnyEvent]:
        first = self.projection.seq + 1
        return [
            msgspec.structs.replace(self._store.redaction.event(one), seq=first + place, gen=1)
            for place, one in enumerate(new)
        ]

    def project(self) -> None:
        """Do nothing: there are no files to update."""


class MemoryStore:
    """The agents of one project; replaces `rekindle.stores.files.FileStore` in tests."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        redaction: Redaction | None = None,
        keep: int | None = None,
    ) -> None:
        """Make an empty store that keeps the last `keep` events of each log; None keeps all."""
        self.redaction = redaction or Redaction()
        self.inbox: dict[str, list[AnyEvent]] = {}
        self.log: dict[str, list[AnyEvent]] = {}
        self.clock = clock
        self._keep = keep
        self._known: dict[str, Projection] = {}
        self._folders: dict[str, MemoryFolder] = {}
        self._writing: set[str] = set()
        self._supervised: set[str] = set()
        self._background: dict[str, BackgroundRecord] = {}
        self._question_numbers: dict[str, int] = {}

    def last_question(self, agent: str) -> int:
        """Return the number of the last question that the operator may have seen."""
        return self._question_numbers.get(agent, 0)

    def keep_question_number(self, agent: str, number: int) -> None:
        self._question_numbers[agent] = number

    def background(self, agent: str) -> BackgroundRecord:
        return self._background.get(agent, BackgroundRecord())

    def write_background_record(self, agent: str, record: BackgroundRecord) -> None:
        self._background[agent] = record

    def folder(self, agent: str) -> MemoryFolder:
        if agent not in self._folders:
            self._folders[agent] = MemoryFolder(Path("/nowhere") / agent)
        return self._folders[agent]

    def exists(self, agent: str) -> bool:
        return agent in self._known

    def create(self, agent: str) -> None:
        """Create an agent if it does not exist."""
        with self.writer(agent):
            pass

    def read(self, agent: str) -> MemoryView:
        """Return an agent's state, including records that have not been folded yet."""
        known = self._known.get(agent) or Projection(agent=agent)
        return MemoryView(known, tuple(self.inbox.get(agent, ())))

    def document(self, agent: str, name: str) -> bytes | None:
        """Return None, because no document is committed; a test can override this method."""
        del agent, name
        return None

    def report(self, agent: str, *records: AnyEvent) -> None:
        """Acknowledge records, as hooks do; the next writer folds them."""
        self.inbox.setdefault(agent, []).extend(records)
        self.folder(agent).writes += 1

    def submit(self, agent: str, *records: AnyEvent) -> bool:
        """Acknowledge records and fold them; return False if an open writer is to fold them."""
        self.report(agent, *records)
        try:
            with self.writer(agent) as writer:
                writer.fold()
        except BusyError:
            return False
        return True

    @contextmanager
    def writer(self, agent: str, *, wait: float = LOCK_WAIT_SECONDS) -> Iterator[MemoryWriter]:
        """Open the agent's only writer; raise BusyError without waiting if it is already open."""
        if agent in self._writing:
            raise BusyError(agent, wait)
        self._writing.add(agent)
        try:
            writer = MemoryWriter(self, agent)
            if agent not in self._known:
                writer.append(AgentCreated(ts=self.clock(), agent=agent))
            yield writer
        finally:
            self._writing.discard(agent)

    def commit(self, agent: str, stamped: list[AnyEvent], *, folded: int = 0) -> None:
        """Make events durable, and remove the folded records from the inbox.

        An override that raises before it calls this method commits nothing.
        """
        known = fold_events(self.read(agent).committed, stamped)
        if known.seq // _PRUNE_EVERY != (known.seq - len(stamped)) // _PRUNE_EVERY:
            known = prune_projection(known)
        self._known[agent] = known
        self.folder(agent).writes += 1
        if folded:
            del self.inbox[agent][:folded]
        log = self.log.setdefault(agent, [])
        log += stamped
        if self._keep is not None:
            del log[: max(0, len(log) - self._keep)]

    @contextmanager
    def supervising(self, agent: str) -> Iterator[None]:
        """Act as the agent's only supervisor until the block ends."""
        if agent in self._supervised:
            raise SupervisedError(agent)
        self._supervised.add(agent)
        try:
            yield
        finally:
            self._supervised.discard(agent)

    def is_supervised(self, agent: str) -> bool:
        """Return whether a supervisor is running."""
        return agent in self._supervised

    def check_supervision(self, agent: str) -> None:
        """Do nothing: a folder in memory cannot be removed or replaced."""

    def note_stop(self, agent: str, command: DesiredSet) -> None:
        """Do nothing: memory is never full, so a stop is always in the log."""

    def stamp(self, agent: str) -> object:
        return self.folder(agent).stamp()

    def events_since(self, agent: str, seq: int) -> list[AnyEvent]:
        """Return the events after a sequence number."""
        return [one for one in self.log.get(agent, ()) if one.seq > seq]
