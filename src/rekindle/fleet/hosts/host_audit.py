"""The audit trail of an agent on a fleet, in its clone and on the remote.

Each host continues the branch `rekindle/<agent>/relay` of the remote, and pushes it after every
relay. Like on a single host, the trail may lag behind the log, but never makes a cycle fail.
"""

from collections.abc import Callable
from pathlib import Path

from rekindle.errors import AuditError, RekindleError
from rekindle.flows.supervisor_ports import SupervisorReport, TroubleReport
from rekindle.stores.audit_trail import AuditTrail, make_branch_name
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system import clock
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy


class HostAuditTrail(AuditTrail):
    """The trail of one agent, for one lease."""

    def __init__(
        self,
        clone: Path,
        agent: str,
        remote: RemoteRepository,
        tell: Callable[[SupervisorReport], None],
    ) -> None:
        super().__init__(clone, clock=clock.read_clock, say=self._report)
        self._clone, self._remote, self._tell = clone, remote, tell
        self._ref = f"refs/heads/{make_branch_name(agent)}"
        self._pushed: str | None = None
        """Commit of the remote's branch; None if it is not known yet."""

    def follow(self, folder: AgentFolder, confirmed: int, *, is_asked_for: bool = False) -> int:
        """Continue the remote's trail, and push the new commits."""
        try:
            copy = WorkingCopy(self._clone)
            if self._pushed is None:
                self._pushed = self._fetch(copy)
            left = super().follow(folder, confirmed, is_asked_for=is_asked_for)
            tip = copy.find_ref(self._ref)
            if tip is not None and tip.oid != self._pushed:
                # If another program has moved the branch, fetch it before the next push.
                is_pushed = self._remote.push(copy, tip.oid, self._pushed)
                self._pushed = tip.oid if is_pushed else None
        except RekindleError as error:
            self._report(error)
            return 0
        return left

    def _fetch(self, copy: WorkingCopy) -> str:
        """Take over the remote's branch, unless the clone's branch continues it."""
        there = self._remote.look().work
        if there:
            if not copy.has(there):
                self._remote.fetch(copy, self._ref)
            here = copy.find_ref(self._ref)
            if here is None or not copy.is_kept((there,), by=(here.oid,)):
                copy.move(self._ref, there)
        return there

    def _report(self, error: AuditError | RekindleError) -> None:
        self._tell(TroubleReport(f"the audit trail was not updated: {error}"))
