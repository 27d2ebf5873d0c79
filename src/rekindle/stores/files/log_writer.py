"""Append to an agent's log: number, seal and sync events, and refuse them after a takeover."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    DocumentCommitted,
)
from rekindle.errors import (
    OwnershipError,
    TamperedLogError,
)
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.ports import EventRegister
from rekindle.stores.files import (
    ownership,
    resolved_file,
)
from rekindle.stores.files.ownership import AgentOwner
from rekindle.stores.folders import spending_file
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    question_numbers,
    seal,
    snapshot,
)
from rekindle.stores.log.seal import ChainPosition
from rekindle.stores.log.view import AgentView
from rekindle.system.files import durable_files, file_locks


class LogWriter:
    """The only writer of an agent's log, while it holds the agent's lock."""

    def __init__(
        self,
        folder: AgentFolder,
        *,
        lock: file_locks.FileLock,
        owner: AgentOwner,
        view: AgentView,
        settings: Settings,
        redaction: Redaction,
        clock: Callable[[], datetime],
        register: EventRegister | None = None,
    ) -> None:
        self.folder = folder
        self._register = register
        self.projection: Projection = view.committed
        self._lock = lock
        self._owner = owner
        self._settings = settings
        self._redaction = redaction
        self._clock = clock
        self._end, self._chain = view.end, view.chain
        self._has_leftover = view.has_leftover
        self._is_alone = True
        """Whether this writer has read the whole log. Another host may also append lines."""
        self._snapshot_end = view.snapshot_end
        self._start = view.start
        self._since: list[AnyEvent | events.UnknownEvent] = list(view.tail)
        self._resolving = view.resolving

    def now(self) -> datetime:
        return self._clock()

    def append(self, *new: AnyEvent) -> None:
        """Redact events and append them durably to the log."""
        if new:
            self._append_events(*new)

    def catch_up(self) -> None:
        """Append events that other hosts have sent to the register."""
        if self._register is not None:
            self._append_events()

    def snapshot(self) -> None:
        """Write pending resolutions to resolved.jsonl, then save a snapshot of the log."""
        self._append_resolutions()
        if not self._is_alone:
            return  # a snapshot would hide lines that this writer has not read
        snapshot.save_snapshot(self.folder, self.projection, self._end, self._chain)
        self._snapshot_end = self._end
        self._start, self._since, self._resolving = self.projection, [], ()

    def _append_events(self, *new: AnyEvent) -> None:
        # Check before each write, because another host may have taken over.
        ownership.require_owner(self.folder, self._owner)
        if not self._lock.is_still_at_path():
            raise OwnershipError(
                f"agent {self.folder.name}: its lock was removed while it was held",
                hint="do not change the run folder while the agent is in use",
            )
        for event in new:
            if isinstance(event, events.CycleEnded):
                self._refuse_second_cycle_end(event.cycle)
            elif isinstance(event, events.QuestionAsked):
                question_numbers.keep(self.folder, event.number)
        lines = self._number_lines([self._redaction.event(event) for event in new])
        if not lines:
            return
        start, end = self._append_sealed(lines)
        stamped = [events.parse(line) for line in lines]
        # If another host has taken over since, it ignores these lines, so this writer must too.
        ownership.require_owner(self.folder, self._owner)
        self._is_alone = self._is_alone and start == self._end
        self._end = end
        spent = self.projection.run.run_spending()
        self.projection = fold_events(self.projection, stamped)
        self._since += stamped
        if (now_spent := self.projection.run.run_spending()) != spent:
            spending_file.save_spending(self.folder, now_spent)

    def _refuse_second_cycle_end(self, cycle: int) -> None:
        """Refuse to end a cycle that has already ended.

        This also checks the log's lines: after an older `owner.json` or snapshot is restored, the
        projection may lack some of them. Lines from an older generation do not count, because that
        host had lost the agent.
        """
        ended = self.projection.cycle_ended
        if self._register is None:
            for entry in event_log.read_backwards(self.folder.log, holding=(b'"cycle.ended"',)):
                event = entry.event
                if isinstance(event, events.CycleEnded) and event.gen >= self._owner.gen:
                    ended = max(ended, event.cycle)
                    break
        if cycle <= ended:
            agent = self.folder.name
            raise OwnershipError(
                f"agent {agent}: the log already has the end of cycle {cycle}",
                hint="another process, or an older copy of the folder, is working on the agent: "
                f"run `rekindle stop {agent}`, then `rekindle doctor`",
            )

    def _append_sealed(self, lines: Sequence[bytes]) -> tuple[int, int]:
        """Append lines to the log and seal them. If interrupted, the seal stays valid."""
        private = self.folder.private
        if private is None:
            return event_log.append_lines(self.folder.log, lines)
        ends = [line + b"\n" for line in lines]
        base = ChainPosition(self._end, self._chain)
        then = ChainPosition(
            self._end + sum(len(line) for line in ends), seal.extend_chain(self._chain, ends)
        )
        if self._has_leftover:  # the seal does not cover leftover bytes
            durable_files.truncate_file(self.folder.log, self._end)
        seal.promise_append(private.seal, base, then)
        self._has_leftover = True  # until the append is done
        start, end = event_log.append_lines(self.folder.log, lines)
        if start != base.end:
            ownership.require_owner(self.folder, self._owner)
            raise TamperedLogError(self.folder.name, "appended")
        self._has_leftover, self._chain = False, then.chain
        seal.confirm_append(private.seal, then)
        return start, end

    def _number_lines(self, new: Sequence[AnyEvent]) -> Sequence[bytes]:
        """Number the events after any lines from other hosts, and render them as log lines."""
        if self._register is None:
            first, gen = self.projection.seq + 1, self._owner.gen
            return [
                events.render(msgspec.structs.replace(event, seq=first + position, gen=gen))
                for position, event in enumerate(new)
            ]
        documents = {
            path: content
            for event in new
            if isinstance(event, DocumentCommitted)
            for path in (event.path, getattr(event, "trimmed", ""))
            if path and (content := durable_files.read_bytes(self.folder.path / path)) is not None
        }
        return self._register.commit(self.projection.seq, new, documents)

    def _append_resolutions(self) -> None:
        resolving = [*self._resolving, *open_loops.select_resolving_events(self._since)]
        resolved_file.append_resolutions(self.folder, resolving, self.projection.seq)

    def _project_at(self, seq: int) -> Projection:
        """Return the projection as of an event, or the current one if the event is too old."""
        if not self._start.seq <= seq < self.projection.seq:
            return self.projection
        return fold_events(self._start, [event for event in self._since if event.seq <= seq])
