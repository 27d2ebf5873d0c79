"""Push the work of a host's agents to a remote together, and not too often.

Each process that wants to push writes a request to a folder. One of the waiting processes waits for
the next permitted time, then pushes all requests with a single `git push`, and writes an answer to
each. Every ref keeps its own lease: if git refuses one, it still pushes the others.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from rekindle.errors import WorkspaceError
from rekindle.formats import validation
from rekindle.policy.fleet import push_rate
from rekindle.policy.fleet.push_rate import PushRate
from rekindle.system.files import durable_files, file_locks
from rekindle.thresholds.storage import (
    PUSH_BATCH,
    PUSH_PATIENCE_SECONDS,
    PUSH_POLL_SECONDS,
    WORKSPACE_TRANSFER_SECONDS,
)

_REQUEST, _ANSWER, _LOCK = ".request", ".answer", ".lock"


class RefUpdate(msgspec.Struct, frozen=True):
    """A ref to move on the remote, if it is still at `expected`."""

    objects: str
    """Folder with the commit's objects."""
    ref: str
    commit: str
    expected: str
    """Current commit of the ref; empty if it does not exist."""
    is_alone: bool = False
    """Whether to push this update separately from others."""


class PushAnswer(msgspec.Struct, frozen=True):
    """Git's answer for one ref."""

    is_done: bool = False
    is_rejected: bool = False
    """Whether git answered for this ref, and did not move it."""
    complaint: str = ""
    """Git's messages if the push failed."""


Document = TypeVar("Document", RefUpdate, PushAnswer, PushRate)
SendUpdates = Callable[[Sequence[RefUpdate]], dict[str, PushAnswer]]
"""Pushes updates, and returns the answer for each ref."""


class PushQueue:
    """The queue of one host for one remote."""

    def __init__(self, folder: Path, per_minute: int) -> None:
        self._folder, self._per_minute = folder, per_minute
        self._rate_file = folder / "rate.json"

    def push(self, update: RefUpdate, send: SendUpdates) -> PushAnswer:
        """Push an update when it is permitted, together with those of other agents.

        Raises:
            WorkspaceError: The remote has refused pushes for a long time because of its limit.
        """
        with self._request(update) as request:
            deadline = time.monotonic() + PUSH_PATIENCE_SECONDS + WORKSPACE_TRANSFER_SECONDS
            while time.monotonic() < deadline:
                if answer := self._read_answer(request):
                    return answer
                with file_locks.hold_lock(self._folder / "lock", 0) as lock:
                    # The previous holder of the lock may have just written the answer.
                    if lock is not None and not self._read_answer(request):
                        self._push_waiting(request, send)
                        continue
                time.sleep(PUSH_POLL_SECONDS)
        raise _make_limit_error("the queue of this host does not move")

    @contextmanager
    def _request(self, update: RefUpdate) -> Iterator[Path]:
        """Write a request, and hold its lock to show that a process is waiting for the answer."""
        for folder in (self._folder.parent.parent, self._folder.parent, self._folder):
            if not folder.exists():
                durable_files.make_folder(folder)
        request = self._folder / f"{secrets.token_hex(8)}{_REQUEST}"
        lock = request.with_suffix(_LOCK)
        try:
            with file_locks.hold_lock(lock, 0):
                self._write(request, update)
                yield request
        finally:
            self._remove(request)

    def _push_waiting(self, own: Path, send: SendUpdates) -> None:
        """Wait for the next permitted time, push all requests, and write the answers.

        The caller holds the lock.
        """
        deadline = time.monotonic() + PUSH_PATIENCE_SECONDS
        reason = "this host has used up `pushes_per_minute`"
        while True:
            self._wait_for_turn(deadline, reason)
            batch = self._select_batch(own)
            self._write_rate(push_rate.start_push(self._read_rate(), time.time(), self._per_minute))
            answers = send([*batch.values()])
            limits = {
                ref: answer.complaint
                for ref, answer in answers.items()
                if not answer.is_done and push_rate.is_limit_answer(answer.complaint)
            }
            self._answer(
                {one: update for one, update in batch.items() if update.ref not in limits}, answers
            )
            if not limits:
                self._write_rate(push_rate.accept_push(self._read_rate()))
                return
            self._write_rate(push_rate.refuse_push(self._read_rate(), time.time()))
            if batch[own].ref not in limits:
                return
            reason = limits[batch[own].ref]

    def _answer(self, batch: dict[Path, RefUpdate], answers: Mapping[str, PushAnswer]) -> None:
        is_clear = len(batch) == 1 or any(
            one.is_done or one.is_rejected for one in answers.values()
        )
        for request, update in batch.items():
            if is_clear:
                self._write(request.with_suffix(_ANSWER), answers[update.ref])
            elif request.exists():
                # Git did not answer for any ref. The repository of one of the agents may be
                # damaged, so push each update separately.
                self._write(request, msgspec.structs.replace(update, is_alone=True))

    def _wait_for_turn(self, deadline: float, reason: str) -> None:
        while wait := push_rate.find_wait(self._read_rate(), time.time(), self._per_minute):
            left = deadline - time.monotonic()
            if left <= 0:
                raise _make_limit_error(reason)
            time.sleep(min(wait, left))

    def _select_batch(self, own: Path) -> dict[Path, RefUpdate]:
        """Return the requests to push together, one for each ref."""
        mine = self._read_request(own)
        if mine is None:
            raise WorkspaceError("broken", f"{own} was removed", hint="Rekindle will retry later")
        batch = {own: mine}
        if mine.is_alone:
            return batch
        refs = {mine.ref}
        for request in sorted(self._folder.glob(f"*{_REQUEST}")):
            if request == own or len(batch) == PUSH_BATCH:
                continue
            if not file_locks.is_locked(request.with_suffix(_LOCK)):
                self._remove(request)  # its process was killed
                continue
            update = self._read_request(request)
            is_answered = request.with_suffix(_ANSWER).exists()
            if update and not update.is_alone and update.ref not in refs and not is_answered:
                batch[request] = update
                refs.add(update.ref)
        return batch

    def _read_request(self, request: Path) -> RefUpdate | None:
        return _read(request, RefUpdate)

    def _read_answer(self, request: Path) -> PushAnswer | None:
        return _read(request.with_suffix(_ANSWER), PushAnswer)

    def _read_rate(self) -> PushRate:
        return _read(self._rate_file, PushRate) or PushRate()

    def _write_rate(self, rate: PushRate) -> None:
        self._write(self._rate_file, rate)

    def _write(self, path: Path, document: PushRate | PushAnswer | RefUpdate) -> None:
        durable_files.replace_file(path, validation.encode_json(document), is_durable=False)

    def _remove(self, request: Path) -> None:
        for suffix in (_REQUEST, _ANSWER, _LOCK):
            durable_files.remove_file(request.with_suffix(suffix))


def _read(path: Path, kind: type[Document]) -> Document | None:
    try:
        data = durable_files.read_bytes(path)
        return validation.decode_json(data, kind) if data else None
    except msgspec.MsgspecError:
        return None


def _make_limit_error(reason: str) -> WorkspaceError:
    return WorkspaceError(
        "limited",
        f"the push was delayed for too long: {reason}",
        hint="Rekindle will retry later; lower `fleet: pushes_per_minute:` if this happens often",
    )
