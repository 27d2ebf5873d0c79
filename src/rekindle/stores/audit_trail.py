"""The audit trail: each committed relay becomes a commit on a separate git branch.

The branch `rekindle/<agent>/relay` shares no history with the user's branches, contains only
`consensus.md`, and never loses a commit. The log remains the source of truth. The trail is written
after the relay is committed and the agent's lock is released, so it may lag behind the log, but it
never makes a command fail. Missing commits are rebuilt from the log. The same relay always produces
the same commit, so a crash neither loses nor duplicates one.

Each branch belongs to one log. If a branch contains anything else, Rekindle does not touch it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rekindle.documents.commits import audit_commit
from rekindle.documents.events import RelayCommitted
from rekindle.errors import AuditError, RekindleError
from rekindle.formats import json_codec
from rekindle.policy.relay import audit_lag
from rekindle.policy.relay.audit_lag import AuditLag
from rekindle.policy.settings.runtime_settings import (
    AUDIT_BATCH,
    AUDIT_CALL_SECONDS,
    AUDIT_REST_SECONDS,
    AUDIT_TRIES,
    LOCK_WAIT_SECONDS,
)
from rekindle.stores.files.folder_check import FolderProblem
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import event_log
from rekindle.system.files import durable_files, file_locks

if TYPE_CHECKING:
    from rekindle.system.git.repository import (
        BranchTip,
        Repository,
    )

RELAY_FILE = "consensus.md"
_KINDS = (b'"relay.committed"', b'"owner.changed"', b'"agent.received"')
"""Event kinds that determine the content of the trail.

`owner.changed` starts a new generation, and `agent.received` the log of a replica.
"""


def make_branch_name(agent: str) -> str:
    return f"rekindle/{agent}/relay"


class AuditObstacle(msgspec.Struct, frozen=True):
    """A problem that has already been reported to the user."""

    cause: str
    ts: datetime


class AuditTrail:
    """Audit trails for a project's agents, in the project's git repository."""

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
        """Add missing relays to the trail, and return how many are still missing.

        This never raises, and reports each problem only once.
        """
        obstacle = _read_obstacle(folder)
        if obstacle and obstacle.cause == "slow" and not is_asked_for:
            rests_until = obstacle.ts + timedelta(seconds=AUDIT_REST_SECONDS)
            if obstacle.ts <= self._clock() < rests_until:
                return 0
        try:
            # Commands for the same agent take turns. The second one may find its relay already in
            # the trail.
            with file_locks.hold_lock(folder.audit_lock, LOCK_WAIT_SECONDS) as lock:
                if lock is None:
                    return 0
                left = self._catch_up(folder, confirmed)
        except (RekindleError, OSError) as error:
            self._note_obstacle(folder, obstacle, _to_audit_error(error))
            return 0
        if obstacle:
            with suppress(RekindleError):
                durable_files.remove_file(folder.audit)
        return left

    def inspect(self, folder: AgentFolder, confirmed: int) -> list[FolderProblem]:
        """Return notes for `doctor` if the trail lags behind or cannot be written."""
        try:
            _, lag = self._find_lag(self._open_repository(), folder, confirmed)
        except (RekindleError, OSError) as error:
            obstacle = _to_audit_error(error)
            return [FolderProblem(str(obstacle), obstacle.hint, is_note=True)]
        if not lag.missing:
            return []
        return [
            FolderProblem(
                f"relays that are missing from the git audit trail: {len(lag.missing)}",
                "rekindle doctor --fix",
                is_note=True,
            )
        ]

    def commits(self, folder: AgentFolder) -> dict[tuple[int, str], str]:
        """Return each relay's commit in the trail, by event number and hash."""
        repository = self._open_repository()
        ref = f"refs/heads/{make_branch_name(folder.name)}"
        if repository.tip(ref) is None:
            return {}
        by_event = {}
        for commit in repository.history(ref):
            recorded = audit_commit.parse(commit.message)
            if recorded:
                by_event[recorded.seq, recorded.sha256] = commit.oid
        return by_event

    def read(self, oid: str) -> bytes:
        """Return a relay as stored in the trail."""
        return self._open_repository().read(oid, RELAY_FILE)

    def _open_repository(self) -> "Repository":
        # Imported here so most commands do not load the git modules.
        from rekindle.system.git.repository import Repository  # noqa: PLC0415

        return Repository(self._project, timeout=AUDIT_CALL_SECONDS)

    def _catch_up(self, folder: AgentFolder, confirmed: int) -> int:
        repository = self._open_repository()
        for _ in range(AUDIT_TRIES):
            tip, lag = self._find_lag(repository, folder, confirmed)
            batch = list(islice(_read_missing(folder, lag.missing), AUDIT_BATCH))
            if not batch:
                return 0
            newest = old = tip.oid if tip else ""
            pack = repository.new_pack(like=old)
            for event, data in batch:
                tree = pack.tree({RELAY_FILE: pack.blob(data)})
                parents = [newest] if newest else []
                message = audit_commit.render(event)
                newest = pack.commit(tree, parents, message, int(event.ts.timestamp()))
            ref = f"refs/heads/{make_branch_name(folder.name)}"
            repository.add(pack, ref)
            # A process without our lock may have moved the branch. If so, start again from its new
            # tip.
            if repository.move(ref, newest, old):
                last, _ = batch[-1]
                return sum(event.seq > last.seq for event in lag.missing)
        raise AuditError(
            "moved",
            f"another process keeps moving the branch {make_branch_name(folder.name)}",
            hint="when it has stopped, run: rekindle doctor --fix",
        )

    def _find_lag(
        self, repository: "Repository", folder: AgentFolder, confirmed: int
    ) -> "tuple[BranchTip | None, AuditLag]":
        """Return the branch's tip and the relays that are missing from the branch.

        Raises:
            AuditError: The branch must not be changed.
        """
        name = make_branch_name(folder.name)
        ref = f"refs/heads/{name}"
        tip = repository.tip(ref)
        rename_command = f"git branch -m {name} {name.replace('/', '-')}-old"
        if tip and tip.symref:
            raise AuditError(
                "foreign",
                f"the branch {name} is another name for {tip.symref}",
                hint=f"git symbolic-ref --delete {ref}",
            )
        if tip.checked_out if tip else repository.is_checked_out(ref):
            # Moving a checked-out branch would make every file in its work tree look changed.
            raise AuditError(
                "checked-out",
                f"the branch {name} is checked out",
                hint="switch that work tree to another branch",
            )
        last = audit_commit.parse(tip.message) if tip else None
        if tip and last is None:
            raise AuditError(
                "foreign",
                f"the branch {name} has commits that are not Rekindle's",
                hint=rename_command,
            )
        lag = audit_lag.find_audit_lag(
            last, (entry.event for entry in event_log.read_backwards(folder.log, _KINDS)), confirmed
        )
        if not lag.is_ours:
            raise AuditError(
                "foreign", f"the branch {name} is the trail of another log", hint=rename_command
            )
        return tip, lag

    def _note_obstacle(
        self, folder: AgentFolder, noted: AuditObstacle | None, error: AuditError
    ) -> None:
        if noted is None or noted.cause != error.cause:
            self._say(error)
        elif error.cause != "slow":
            return
        with suppress(RekindleError):
            notice = AuditObstacle(error.cause, self._clock())
            durable_files.replace_file(folder.audit, json_codec.encode(notice, folder.audit.name))


def _read_missing(
    folder: AgentFolder, missing: Iterable[RelayCommitted]
) -> Iterator[tuple[RelayCommitted, bytes]]:
    """Yield relays and their bytes. Skip a relay if its archived copy is lost or changed."""
    for event in missing:
        data = durable_files.read_bytes(folder.path / event.path)
        if data is not None and json_codec.hash_bytes(data) == event.sha256:
            yield event, data


def _read_obstacle(folder: AgentFolder) -> AuditObstacle | None:
    try:
        return msgspec.json.decode(
            durable_files.read_bytes(folder.audit) or b"", type=AuditObstacle
        )
    except (RekindleError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _to_audit_error(error: RekindleError | OSError) -> AuditError:
    if isinstance(error, AuditError):
        return error
    hint = error.hint if isinstance(error, RekindleError) else ""
    return AuditError("refused", str(error), hint=hint or "rekindle doctor")
