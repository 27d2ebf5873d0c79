"""Take snapshots of the work tree during a cycle, and record them in the log.

A snapshot never stops the agent: a failure is reported once, and the work continues without one.
"""

from threading import Thread

from rekindle.documents import events
from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel, SnapshotReason
from rekindle.errors import RekindleError, WorkspaceError
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.policy.projection import sessions

_Result = tuple[Snapshot, bool] | RekindleError | None


class CycleSnapshots:
    """The snapshots that one agent's supervisor takes."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts, log: AgentLog) -> None:
        self._agent, self._ports, self._log = agent, world, log
        self._is_slow = False
        self._begun: tuple[SnapshotLabel, Thread, list[_Result]] | None = None
        self._reported: set[str] = set()

    def take(self, cycle: int, reason: SnapshotReason) -> None:
        """Take a snapshot. If nothing changed, it is stored only when a cycle starts."""
        self.finish()
        if self._is_slow and reason != "start":
            return  # retried in the next cycle
        label = self._make_label(cycle, reason)
        self._record(label, self._try(label))

    def begin(self, cycle: int, reason: SnapshotReason) -> None:
        """Begin a snapshot in the background, unless one is under way. `finish` records it.

        Nothing may change the work tree until then.
        """
        if self._is_slow or self._ports.take_snapshot is None or self._begun is not None:
            return
        label = self._make_label(cycle, reason)
        results: list[_Result] = []
        thread = Thread(target=lambda: results.append(self._try(label)), daemon=True)
        self._begun = label, thread, results
        thread.start()

    def finish(self) -> None:
        """Wait for the snapshot that was begun, if there is one, and record it."""
        if self._begun is not None:
            (label, thread, results), self._begun = self._begun, None
            thread.join()
            self._record(label, *results)

    def _make_label(self, cycle: int, reason: SnapshotReason) -> SnapshotLabel:
        launches = sessions.select_cycle_launches(self._log.known().attempts, cycle)
        last = [*launches][-1] if launches else ""
        return SnapshotLabel(self._agent.name, reason, self._ports.clock(), cycle, last)

    def _try(self, label: SnapshotLabel) -> _Result:
        if self._ports.take_snapshot is None:
            return None
        try:
            return self._ports.take_snapshot(label)
        except RekindleError as error:
            return error

    def _record(self, label: SnapshotLabel, result: _Result = None) -> None:
        """Record a new snapshot, or report the first failure of each kind."""
        self._is_slow = isinstance(result, WorkspaceError) and result.cause == "slow"
        if isinstance(result, RekindleError):
            cause = result.cause if isinstance(result, WorkspaceError) else str(result)
            if cause not in self._reported:
                self._reported.add(cause)
                words = f"{self._agent.name} continues without a snapshot of its work tree"
                self._ports.tell(TroubleReport(f"{words}: {result}"))
            return
        if result is None or not result[1]:
            return
        snapshot = result[0]
        taken = events.SnapshotTaken(
            ts=self._ports.clock(),
            snapshot=snapshot.name,
            commit=snapshot.commit,
            reason=label.reason,
            cycle=label.cycle,
            launch=label.launch,
            left_out=len(snapshot.left_out) + snapshot.more_left_out,
        )
        self._log.append(taken)
