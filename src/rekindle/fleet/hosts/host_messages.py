"""Messages between a worker and the process that runs a cycle for it."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection

import msgspec

from rekindle.documents import events
from rekindle.documents.events import AnyEvent
from rekindle.errors import DocumentError, EngineError, OwnershipError
from rekindle.fleet.agent.host_orders import HostOrder, LeaseEnd
from rekindle.policy.fleet.agent_leases import LeaseRequest, OpenLease
from rekindle.policy.fleet.agent_registry import CommitRequest, CommitResult
from rekindle.policy.settings.runtime_settings import FLEET_COMMIT_BYTES


class LeaseRefusal(msgspec.Struct, frozen=True):
    """Answer for a lease that is no longer valid."""

    words: str


class UnfitRequest(msgspec.Struct, frozen=True):
    """Answer for a request that the engine would never accept from any host."""

    words: str


class EngineCutOff(msgspec.Struct, frozen=True):
    """Answer after an outage so long that another host has the agent."""

    words: str


class EndedLease(msgspec.Struct, frozen=True):
    """Answer to the report that a lease has ended."""


EngineRequest = LeaseRequest | CommitRequest | LeaseEnd
EngineAnswer = OpenLease | CommitResult | EndedLease | LeaseRefusal | UnfitRequest | EngineCutOff
EngineAsker = Callable[[EngineRequest], EngineAnswer]


class ProcessFailure(msgspec.Struct, frozen=True):
    """Reason why a process could not do its work."""

    words: str
    hint: str = ""
    is_lost: bool = False
    """Whether another host, or another process on this host, has the agent."""

    def render(self) -> str:
        return f"{self.words} (→ {self.hint})" if self.hint else self.words


class EngineRegister:
    """Commits an agent's events to its workflow under one lease."""

    def __init__(self, order: HostOrder, ask: EngineAsker) -> None:
        self._agent, self._lease, self._ask = order.agent, order.lease, ask
        self.generation = order.generation

    def take_up(
        self, host: str, *, seen: int, seq: int = 0, held: str = "", defined: str = ""
    ) -> OpenLease:
        """Open the lease. `seen` is the highest generation that this host knows of."""
        request = LeaseRequest(
            generation=self.generation,
            lease=self._lease,
            seen=seen,
            host=host,
            seq=seq,
            held=held,
            defined=defined,
        )
        answer = self._request_answer(request)
        if not isinstance(answer, OpenLease):
            raise _make_strange_error(answer)
        self.generation = answer.generation
        return answer

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        lines: list[bytes] = []
        for piece in _split_lines([events.render(event).decode() for event in new]):
            lines += self._commit_piece(known + len(lines), piece, documents)
        return lines

    def _commit_piece(
        self, last_seq: int, lines: tuple[str, ...], documents: Mapping[str, bytes]
    ) -> list[bytes]:
        request = CommitRequest(
            id=uuid.uuid4().hex,
            generation=self.generation,
            lease=self._lease,
            known=last_seq,
            lines=lines,
            documents={path: data.decode() for path, data in documents.items()},
        )
        answer = self._request_answer(request)
        if not isinstance(answer, CommitResult):
            raise _make_strange_error(answer)
        return [line.encode() for line in answer.lines]

    def _request_answer(self, request: EngineRequest) -> EngineAnswer:
        answer = self._ask(request)
        match answer:
            case LeaseRefusal() | EngineCutOff():
                raise OwnershipError(
                    f"agent {self._agent} no longer belongs to this host: {answer.words}",
                    hint="nothing to do here: the host that now has the lease continues the agent",
                )
            case UnfitRequest():
                raise DocumentError("commit", answer.words)
            case _:
                return answer


def _split_lines(lines: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield pieces that each fit into a commit.

    Hook reports may accumulate while the engine is down.
    """
    piece: list[str] = []
    size = 0
    for line in lines:
        if piece and size + len(line) > FLEET_COMMIT_BYTES:
            yield tuple(piece)
            piece, size = [], 0
        piece.append(line)
        size += len(line)
    yield tuple(piece)


def make_asker(line: Connection) -> EngineAsker:
    """Return a function that sends requests over a pipe. If the pipe breaks, the lease is lost."""

    def ask_worker(request: EngineRequest) -> EngineAnswer:
        try:
            line.send(request)
            answer: EngineAnswer = line.recv()
        except (OSError, EOFError) as gone:
            return EngineCutOff(f"the worker has exited ({gone})")
        return answer

    return ask_worker


def _make_strange_error(answer: EngineAnswer) -> EngineError:
    return EngineError(
        "answer",
        f"the engine sent an unexpected answer: {type(answer).__name__}",
        hint="install the same version of Rekindle on all hosts",
    )
