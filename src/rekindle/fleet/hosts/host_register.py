"""Commit an agent's events together with its pushed work and its relay draft."""

import stat
from collections.abc import Callable, Mapping, Sequence

from rekindle.documents import events
from rekindle.documents.commits.work_commit import PushedWork, make_work_ref
from rekindle.documents.events import AnyEvent
from rekindle.errors import StalePushError, WorkspaceError
from rekindle.fleet.hosts.host_messages import EngineRegister
from rekindle.fleet.hosts.work_branch import WorkBranch
from rekindle.flows.supervisor_ports import SupervisorReport, TroubleReport
from rekindle.policy.fleet import agent_registry
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import FLEET_DOCUMENT_BYTES
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system import clock

_HANDOVER_EVENTS = (
    events.LaunchEnded,
    events.CheckpointCommitted,
    events.CycleEnded,
)
"""Events after which another host may continue without repeating earlier work."""


class HostRegister:
    """Commits events together with their pushed work and relay draft.

    After some events, another host may continue, and would otherwise lose work.
    """

    def __init__(
        self,
        register: EngineRegister,
        folder: AgentFolder,
        redaction: Redaction,
        tell: Callable[[SupervisorReport], None],
    ) -> None:
        self._register, self._folder, self._redaction = register, folder, redaction
        self._tell = tell
        self._workspace: WorkBranch | None = None
        self._claim, self._recorded = 0, ""

    def push_to(self, workspace: WorkBranch, claim: int, recorded: str) -> None:
        """Push to this branch. `recorded` is the last revision that the engine knows."""
        self._workspace, self._claim, self._recorded = workspace, claim, recorded

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        is_due = any(isinstance(event, _HANDOVER_EVENTS) for event in new)
        pushed = self._push_work(known) if is_due else ()
        ended = [event.cycle for event in new if isinstance(event, events.LaunchEnded)]
        drafts = self._read_draft(ended[-1]) if ended else {}
        lines = self._register.commit(known, (*pushed, *new), {**documents, **drafts})
        for event in pushed:
            if isinstance(event, events.WorkspacePushed):
                self._recorded = event.revision
        return lines

    def _read_draft(self, cycle: int) -> dict[str, bytes]:
        """Return the agent's relay draft for the next cycle. It has not been checked yet."""
        path = self._folder.draft
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > FLEET_DOCUMENT_BYTES:
                return {}
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return {}
        # Limit the size in bytes, as the engine does. If the engine refused the commit, the
        # launch's end would be lost too.
        data = self._redaction.text(text).encode()
        return (
            {agent_registry.make_draft_name(cycle): data}
            if len(data) <= FLEET_DOCUMENT_BYTES
            else {}
        )

    def _push_work(self, last_seq: int) -> tuple[AnyEvent, ...]:
        if self._workspace is None:
            return ()
        try:
            # If nothing has changed, the last push may still be unknown to the engine, because its
            # commit failed. Another host would then restore the work from before that push.
            pushed = self._workspace.push() or self._workspace.read_last_push()
        except StalePushError as stale:
            return (self._reclaim_branch(self._workspace, last_seq, stale),)
        except WorkspaceError as error:
            return (self._make_push_failure(str(error)),)
        if pushed is None or pushed.revision == self._recorded:
            return ()
        return (make_pushed_event(pushed, self._claim),)

    def _reclaim_branch(
        self, workspace: WorkBranch, last_seq: int, stale: StalePushError
    ) -> AnyEvent:
        """Reclaim a branch that a person moved; raise an error if another host has the lease."""
        # This commit fails if another host has the agent by now. In that case, nothing may be
        # pushed.
        self._register.commit(last_seq, (), {})
        branch = make_work_ref(stale.agent).removeprefix("refs/heads/")
        how = f"moved to {stale.found[:12]}" if stale.found else "removed"
        changed = f"the branch {branch} was {how} outside Rekindle"
        try:
            pushed = workspace.reclaim_branch()
        except WorkspaceError as error:
            return self._make_push_failure(f"{changed}, and could not be reclaimed: {error}")
        with_theirs = (
            "; the commits pushed there are in its history, but not part of the work"
            if stale.found
            else ""
        )
        self._tell(TroubleReport(f"{changed}, and was reclaimed{with_theirs}"))
        return make_pushed_event(pushed, self._claim)

    def _make_push_failure(self, words: str) -> AnyEvent:
        """Report a failed push and return its event. The next push includes the work."""
        self._tell(TroubleReport(words))
        return events.WorkspacePushFailed(ts=clock.read_clock(), words=words)


def make_pushed_event(pushed: PushedWork, claim: int) -> events.WorkspacePushed:
    return events.WorkspacePushed(
        ts=clock.read_clock(),
        revision=pushed.revision,
        head=pushed.head,
        branch=pushed.branch,
        claim=claim,
    )
