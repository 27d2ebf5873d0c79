"""The audit trail: every committed relay, once more, as a commit on a branch of its own.

The branch `rekindle/<agent>/relay` shares no history with the user's, holds `consensus.md` and
nothing else, and only ever grows. The log stays the truth: the trail is written after the commit
point, outside the agent's lock, may lag, and never fails a command. What it lacks is read from the
log, and a relay always makes the same commit, so a crash anywhere in between costs nothing and
doubles nothing.

One branch belongs to one log. Whatever else is found in its place is left as it is.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rekindle.documents import jsontext, revision
from rekindle.documents.event import RelayCommitted
from rekindle.errors import AuditError, RekindleError
from rekindle.policy import audit
from rekindle.policy.audit import Lag
from rekindle.policy.settings import (
    AUDIT_BATCH,
    AUDIT_CALL_SECONDS,
    AUDIT_REST_SECONDS,
    AUDIT_TRIES,
    LOCK_WAIT_SECONDS,
)
from rekindle.stores.files import log
from rekindle.stores.files.inspection import Problem
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

if TYPE_CHECKING:
    from rekindle.system.git import Repository, Tip

FILE = "consensus.md"
_KINDS = (b'"relay.committed"', b'"owner.changed"')
"""The events that decide what the trail should hold; the second raises the generation."""


def branch(agent: str) -> str:
    return f"rekindle/{agent}/relay"


class Notice(msgspec.Struct, frozen=True):
    """An obstacle that was said already."""

    cause: str
    ts: datetime


class AuditTrail:
    """The trails of a project's agents, in the repository that the project stands in."""

    def __init__(
        self,
        project: Path,
        *,
        clock: Callable[[], datetime],
        say: Callable[[AuditError], None],
    ) -> None:
        self._project = project
        self._clock = clock
        self._say = say

    def follow(self, folder: AgentFolder, confirmed: int, *, is_asked_for: bool = False) -> int:
        """Add relays that the trail lacks; the number that is left for the next time.

        Never fails, and says only once what stands in the way.
        """
        noted = _noted(folder)
        if noted and noted.cause == "slow" and not is_asked_for:
            rests_until = noted.ts + timedelta(seconds=AUDIT_REST_SECONDS)
            if noted.ts <= self._clock() < rests_until:
                return 0
        try:
            # Commands of one agent take turns: who comes second finds its relay there already.
            with disk.locked(folder.audit_lock, LOCK_WAIT_SECONDS) as lock:
                if lock is None:
                    return 0
                left = self._catch_up(folder, confirmed)
        except (RekindleError, OSError) as error:
            self._note(folder, noted, _as_audit_error(error))
            return 0
        if noted:
            with suppress(RekindleError):
                disk.remove(folder.audit)
        return left

    def inspect(self, folder: AgentFolder, confirmed: int) -> list[Problem]:
        """Whether the trail lags, and what stands in its way. None of it is a fault."""
        try:
            _, lag = self._standing(self._repository(), folder, confirmed)
        except (RekindleError, OSError) as error:
            found = _as_audit_error(error)
            return [Problem(str(found), found.hint, is_note=True)]
        if not lag.missing:
            return []
        return [
            Problem(
                f"relays that are not in the git audit trail yet: {len(lag.missing)}",
                "rekindle doctor --fix",
                is_note=True,
            )
        ]

    def commits(self, folder: AgentFolder) -> dict[tuple[int, str], str]:
        """The commit of each relay in the trail, by the event's number and hash."""
        repository = self._repository()
        ref = f"refs/heads/{branch(folder.name)}"
        if repository.tip(ref) is None:
            return {}
        found = {}
        for commit in repository.history(ref):
            ours = revision.parse(commit.message)
            if ours:
                found[ours.seq, ours.sha256] = commit.oid
        return found

    def read(self, oid: str) -> bytes:
        """A relay as the trail keeps it."""
        return self._repository().read(oid, FILE)

    def _repository(self) -> "Repository":
        # Only who commits a relay, or asks for the trail, pays for what it takes to start git.
        from rekindle.system.git import Repository  # noqa: PLC0415

        return Repository(self._project, timeout=AUDIT_CALL_SECONDS)

    def _catch_up(self, folder: AgentFolder, confirmed: int) -> int:
        repository = self._repository()
        for _ in range(AUDIT_TRIES):
            tip, lag = self._standing(repository, folder, confirmed)
            batch = list(islice(_kept(folder, lag.missing), AUDIT_BATCH))
            if not batch:
                return 0
            newest = old = tip.oid if tip else ""
            pack = repository.new_pack(like=old)
            for event, data in batch:
                tree = pack.tree({FILE: pack.blob(data)})
                parents = [newest] if newest else []
                message = revision.render(event)
                newest = pack.commit(tree, parents, message, int(event.ts.timestamp()))
            repository.add(pack)
            # Whoever knows of no lock of ours may have been here meanwhile: then this changes
            # nothing, and the next round finds what they did.
            if repository.move(f"refs/heads/{branch(folder.name)}", newest, old):
                last, _ = batch[-1]
                return sum(event.seq > last.seq for event in lag.missing)
        raise AuditError(
            "moved",
            f"somebody else keeps moving the branch {branch(folder.name)}",
            hint="when that is over: rekindle doctor --fix",
        )

    def _standing(
        self, repository: "Repository", folder: AgentFolder, confirmed: int
    ) -> "tuple[Tip | None, Lag]":
        """Where the branch stands and what it lacks; an error where it must be left alone."""
        name = branch(folder.name)
        ref = f"refs/heads/{name}"
        tip = repository.tip(ref)
        mend = f"git branch -m {name} {name.replace('/', '-')}-old"
        if tip and tip.symref:
            raise AuditError(
                "foreign",
                f"the branch {name} is another name for {tip.symref}",
                hint=f"git symbolic-ref --delete {ref}",
            )
        if tip.checked_out if tip else repository.is_checked_out(ref):
            # Moved under it, the branch would make every file there look changed.
            raise AuditError(
                "checked-out",
                f"the branch {name} is checked out",
                hint="switch that work tree to another branch",
            )
        last = revision.parse(tip.message) if tip else None
        if tip and last is None:
            raise AuditError(
                "foreign", f"the branch {name} has commits that are not Rekindle's", hint=mend
            )
        lag = audit.lag(
            last, (entry.event for entry in log.backwards(folder.log, _KINDS)), confirmed
        )
        if not lag.is_ours:
            raise AuditError("foreign", f"the branch {name} is the trail of another log", hint=mend)
        return tip, lag

    def _note(self, folder: AgentFolder, noted: Notice | None, error: AuditError) -> None:
        if noted is None or noted.cause != error.cause:
            self._say(error)
        elif error.cause != "slow":
            return
        with suppress(RekindleError):
            notice = Notice(error.cause, self._clock())
            disk.replace(folder.audit, jsontext.encode(notice, folder.audit.name))


def _kept(
    folder: AgentFolder, missing: Iterable[RelayCommitted]
) -> Iterator[tuple[RelayCommitted, bytes]]:
    """The relays with their bytes; one that the archive lost is left out: no other text will do."""
    for event in missing:
        data = disk.read(folder.path / event.path)
        if data is not None and jsontext.fingerprint(data) == event.sha256:
            yield event, data


def _noted(folder: AgentFolder) -> Notice | None:
    try:
        return msgspec.json.decode(disk.read(folder.audit) or b"", type=Notice)
    except (RekindleError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _as_audit_error(error: RekindleError | OSError) -> AuditError:
    if isinstance(error, AuditError):
        return error
    hint = error.hint if isinstance(error, RekindleError) else ""
    return AuditError("refused", str(error), hint=hint or "rekindle doctor")
