"""A store in memory: for tests of what runs agents, which need thousands of years and no disk.

It keeps what the files keep, by the same policy: a log that the real fold adds up, an inbox laid
over it for readers, one writer, one supervisor, the markers of the run folder. What only a disk can
do, be torn or edited by hand, it does not play: for that there is the real store in a folder.
A test that wants the disk full, or its supervisor killed in the middle of a write, overrides
`MemoryStore.commit`.
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
from rekindle.policy.operator import questions
from rekindle.policy.projection.fold import (
    Projection,
    fold_events,
    is_repeated,
    make_report_key,
    prune_projection,
)
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS

_PRUNE_EVERY = 64
"""Events after which what is long over is forgotten, as a snapshot would."""


class MemoryMarker:
    """A file that only is there or not."""

    def __init__(self) -> None:
        self.text: str | None = None

    def exists(self) -> bool:
        return self.text is not None

    def unlink(self, *, missing_ok: bool = False) -> None:
        if self.text is None and not missing_ok:
            raise FileNotFoundError
        self.text = None


class MemoryBrakes:
    """No hook looks for these."""

    def rule(self, _launch: str) -> MemoryMarker:
        return MemoryMarker()

    braked = taken = rule

    def forget(self) -> None:
        pass


class MemoryFolder:
    """An agent's folder, as far as whoever runs it looks into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / "run"
        self.transcripts = path / "transcripts"
        self.clean_exit = MemoryMarker()
        self.fresh = MemoryMarker()
        self.writes = 0
        self._started: bytes | None = None

    def stamp(self) -> int:
        """Changes whenever somebody has written to the log or the inbox."""
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

    def weigh(self, _launch: str) -> MemoryMarker:
        return MemoryMarker()

    def brakes(self, _scratch: str) -> MemoryBrakes:
        return MemoryBrakes()

    def remove(self, marker: MemoryMarker) -> None:
        marker.unlink(missing_ok=True)

    def request_fresh_session(self) -> None:
        self.fresh.text = ""

    def write_clean_exit(self, seq: int, outcome: str) -> None:
        self.clean_exit.text = f"{seq} {outcome}\n"


class MemoryView(msgspec.Struct, frozen=True):
    """What a reader sees."""

    committed: Projection
    """The log alone."""
    pending: tuple[AnyEvent, ...] = ()
    """What is acknowledged but not folded yet."""
    condition: str = "sealed"
    is_tampered: bool = False

    @property
    def projection(self) -> Projection:
        """The log, with the inbox laid over it."""
        return fold_events(self.committed, self.pending) if self.pending else self.committed


class MemoryWriter:
    """The agent's only writer, for as long as it is held."""

    def __init__(self, store: "MemoryStore", agent: str) -> None:
        self._store, self._agent = store, agent

    @property
    def projection(self) -> Projection:
        return self._store.read(self._agent).committed

    def fold(self) -> None:
        """Move what the inbox holds into the log."""
        pending = self._store.inbox.get(self._agent)
        if any(isinstance(one, QuestionAnswered) for one in pending or ()):
            for one in list(pending or ()):  # each answer is judged by all that is before it
                self._store.commit(
                    self._agent, self._stamp_events(self._judge_answer(one)), folded=1
                )
        elif pending:
            self._store.commit(
                self._agent, self._stamp_events(self._drop_repeated(pending)), folded=len(pending)
            )

    def _judge_answer(self, one: AnyEvent) -> list[AnyEvent]:
        if isinstance(one, QuestionAnswered):
            return [questions.judge_answer(self.projection, one, self._store.clock())]
        return self._drop_repeated([one])

    def _drop_repeated(self, pending: Sequence[AnyEvent]) -> list[AnyEvent]:
        """Without what hooks, installed twice, have reported twice."""
        seen = dict(self.projection.seen)
        new: list[AnyEvent] = []
        for one in pending:
            if not is_repeated(seen, one):
                new.append(one)
                if key := make_report_key(one):
                    seen[key] = one.ts
        return new

    def append(self, *new: AnyEvent) -> None:
        """Add facts to the log."""
        if new:
            self._store.commit(self._agent, self._stamp_events(new))

    def _stamp_events(self, new: Sequence[AnyEvent]) -> list[AnyEvent]:
        first = self.projection.seq + 1
        return [
            msgspec.structs.replace(self._store.redaction.event(one), seq=first + place, gen=1)
            for place, one in enumerate(new)
        ]

    def project(self) -> None:
        """Nothing to bring up to date: readers of a store in memory have no files."""


class MemoryStore:
    """The agents of one project. Stands in for `rekindle.stores.files.FileStore`."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        redaction: Redaction | None = None,
        keep: int | None = None,
    ) -> None:
        """`keep`: how much of the log is kept to be looked at; None: all of it."""
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
        """Return the number of the last question that the operator may know."""
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
        """Make an agent; one that is there already is left as it is."""
        with self.writer(agent):
            pass

    def read(self, agent: str) -> MemoryView:
        """What is known of an agent now, whether folded yet or not."""
        known = self._known.get(agent) or Projection(agent=agent)
        return MemoryView(known, tuple(self.inbox.get(agent, ())))

    def document(self, agent: str, name: str) -> bytes | None:
        """None: nobody has committed one; override it to have some."""
        del agent, name
        return None

    def report(self, agent: str, *records: AnyEvent) -> None:
        """Acknowledge records and leave them to the next writer, as hooks do."""
        self.inbox.setdefault(agent, []).extend(records)
        self.folder(agent).writes += 1

    def submit(self, agent: str, *records: AnyEvent) -> bool:
        """Acknowledge records, then fold them; False where the agent's writer will."""
        self.report(agent, *records)
        try:
            with self.writer(agent) as writer:
                writer.fold()
        except BusyError:
            return False
        return True

    @contextmanager
    def writer(self, agent: str, *, wait: float = LOCK_WAIT_SECONDS) -> Iterator[MemoryWriter]:
        """The agent's only writer; nobody lets go while another waits, so nobody waits."""
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
        """The moment in which events become durable, and what was folded leaves the inbox.

        All of it, or, where this raises before it calls this one, nothing.
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
        """Be the only one that starts this agent, until this ends, in whatever way."""
        if agent in self._supervised:
            raise SupervisedError(agent)
        self._supervised.add(agent)
        try:
            yield
        finally:
            self._supervised.discard(agent)

    def is_supervised(self, agent: str) -> bool:
        """Whether a supervisor lives."""
        return agent in self._supervised

    def check_supervision(self, agent: str) -> None:
        """Nothing can be removed or replaced in memory."""

    def note_stop(self, agent: str, command: DesiredSet) -> None:
        """Nothing is full in memory: a stop is always in the log."""

    def stamp(self, agent: str) -> object:
        return self.folder(agent).stamp()

    def events_since(self, agent: str, seq: int) -> list[AnyEvent]:
        """What came after a place in the log."""
        return [one for one in self.log.get(agent, ()) if one.seq > seq]
