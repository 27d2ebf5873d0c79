"""A project in memory, for the tests of programs that use the Python API."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import msgspec

from rekindle import config
from rekindle.api.agent import Agent
from rekindle.api.home import Home
from rekindle.api.operator import Operator
from rekindle.api.restart_agents import RestartResult
from rekindle.config import Project
from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.documents.events import AnyEvent, DocumentRejected, RelayCommitted, RelayProposed
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.policy.operator import questions
from rekindle.policy.operator.build_row import RowInputs, build_new_row, build_row
from rekindle.policy.relay.relay_check import find_headline
from rekindle.policy.supervision import run_moves
from rekindle.stores.files.document_writer import find_archived_digest
from rekindle.stores.log.event_log import LogEntry
from rekindle.system import clock
from rekindle.testing.memory_store import MemoryStore


class MemoryHome(Home):
    """A project without files or processes, with the methods of `rekindle.connect(folder)`.

        home = MemoryHome("scout")
        home.append("scout", events.CycleStarted(ts=now, cycle=1))
        home.ask("scout", "Ten or a hundred?")
        program_under_test(home)

    `start`, `stop` and `restart` record the operator's command, and nothing runs. Searches and the
    morning page need files.
    """

    def __init__(self, *agents: str, clock: Callable[[], datetime] = clock.read_clock) -> None:
        """Make a project with these agents, which have never been started."""
        self.path = Path("/memory")
        entries = {name: {"harness": "command", "command": ["true"]} for name in agents}
        text = msgspec.json.encode({"version": 1, "agents": entries}).decode()
        self.operator = Operator(ensure_trust=lambda _: None)
        self._lock, self._clock = RLock(), clock
        self._project = config.make_project(self.path, text)
        self._memory = _MemoryAgents(clock=clock)

    @property
    def project(self) -> Project:
        return self._project

    @property
    def store(self) -> Any:
        return self._memory

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def agent(self, name: str) -> "MemoryAgent":
        return MemoryAgent(self, self.project.require_agent(name))

    def append(self, agent: str, *happened: AnyEvent) -> None:
        """Append events to an agent's log, as its supervisor would."""
        with self._memory.writer(agent) as writer:
            writer.append(*happened)

    def ask(self, agent: str, text: str) -> None:
        """Let an agent wait for a person, and ask this question."""
        now, known = self._clock(), self._memory.read(agent).projection
        paused = events.SafeModeEntered(ts=now, why=questions.WAITING, words=text)
        terms = questions.QuestionTerms(now, float("inf"))
        self.append(agent, *questions.add_questions(known, [paused], terms))

    def rows(self, names: Sequence[str] = ()) -> list[AgentRow]:
        named = [self.project.require_agent(name) for name in names]
        return [self._read_row(name) for name in named or self.agents()]

    def _read_row(self, name: str) -> AgentRow:
        entry = self.project.manifest.agents[name]
        if not self._memory.exists(name):
            return build_new_row(name, entry.harness)
        inputs = RowInputs(self._clock(), is_supervised=self._memory.is_supervised(name))
        return build_row(self._memory.read(name).projection, inputs, entry.harness)


class MemoryAgent(Agent):
    """An agent in memory."""

    def start(self, *, cycles: int | None = None) -> str:
        self._set_desired("running", cycles)
        return "started"

    def stop(self) -> bool:
        was_running = self.home.store.is_supervised(self.name)
        self._set_desired("stopped")
        return was_running

    def restart(self, *, fresh: bool = False) -> RestartResult:
        store: Any = self.home.store
        store.submit(self.name, events.RestartRequested(ts=store.clock(), fresh=fresh))
        self._set_desired("running")
        return "supervised"

    def _set_desired(
        self, desired: Literal["running", "stopped"], cycles: int | None = None
    ) -> None:
        store: Any = self.home.store
        run = store.read(self.name).projection.run
        event = run_moves.make_desired_event(run, desired, store.clock(), cycles)
        store.submit(self.name, event)


class _MemoryAgents(MemoryStore):
    """A store in which relays can be set, for agents that a supervisor seems to run."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        super().__init__(clock=clock)
        self._relays: dict[str, str] = {}
        """The text of each relay, by its hash."""

    def submit(self, agent: str, *records: AnyEvent, take_over: bool = False) -> bool:
        del take_over
        return super().submit(agent, *(self._commit_relay(agent, each) for each in records))

    def _commit_relay(self, agent: str, record: AnyEvent) -> AnyEvent:
        """Return the result of a proposed relay, or any other record unchanged."""
        if not isinstance(record, RelayProposed):
            return record
        current = self.read(agent).committed.documents.get("relay")
        if record.base and (current is None or record.base != current.sha256):
            reason = "another relay was committed since the edit began"
            path = f"rejected-{find_archived_digest(record.text.encode())}"
            return DocumentRejected(ts=record.ts, document="relay", path=path, reason=reason)
        key = hashlib.sha256(record.text.encode()).hexdigest()
        self._relays[key] = record.text
        headline = find_headline(relays.parse(record.text))
        return RelayCommitted(ts=record.ts, sha256=key, path=key, by=record.by, headline=headline)

    def is_supervised(self, agent: str) -> bool:
        run = self.read(agent).projection.run
        return run.desired == "running" and not run.is_over

    def document(self, agent: str, name: str) -> bytes | None:
        committed = self.read(agent).committed.documents.get(name)
        return self._relays[committed.sha256].encode() if committed else None

    def committed_relay(self, agent: str, revision: RelayCommitted) -> bytes | None:
        del agent
        return self._relays[revision.sha256].encode()

    def adopt_edits(self, agent: str) -> None:
        """Do nothing: there are no files to edit."""

    def prepare_start(self, agent: str, *, fresh: bool = False) -> None:
        """Do nothing: there is no session to prepare."""

    def newest_events(self, agent: str) -> Iterator[AnyEvent]:
        return reversed(self.events_since(agent, 0))

    def newest_entries(self, agent: str) -> Iterator[LogEntry]:
        return reversed(list(self.entries_since(agent, 0)))

    def entries_since(self, agent: str, offset: int) -> Iterator[LogEntry]:
        for event in self.events_since(agent, offset):
            yield LogEntry(events.render(event), event, event.seq)
