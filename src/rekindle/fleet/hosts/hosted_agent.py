"""An agent on a host, with its lease, its replica and its workspace."""

import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import PurePosixPath

import msgspec

from rekindle.documents.commits.work_commit import PushedWork
from rekindle.errors import EngineError, RekindleError, StalePushError
from rekindle.fleet.agent.host_orders import HostOrder
from rekindle.fleet.hosts.host_audit import HostAuditTrail
from rekindle.fleet.hosts.host_folder import HostFolder, ReplicaPosition
from rekindle.fleet.hosts.host_messages import EngineRegister, make_asker
from rekindle.fleet.hosts.host_register import HostRegister, make_pushed_event
from rekindle.fleet.hosts.local_remotes import check_remote
from rekindle.fleet.hosts.secret_search import SecretSearch
from rekindle.fleet.hosts.step_inputs import bring_inputs
from rekindle.fleet.hosts.work_branch import WorkBranch
from rekindle.flows.supervisor_ports import REPORT_KINDS, SupervisorReport, TroubleReport
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.fleet_settings import list_engine_files
from rekindle.policy.settings.runtime_settings import FLEET_NICE, STOP_SECONDS, FleetSettings
from rekindle.stores.audit_trail import make_branch_name
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.git.push_queue import PushQueue
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.shared_mirror import open_queue
from rekindle.thresholds.fleet_limits import FLEET_OUTPUT_BYTES


class HostedAgent:
    """An agent on this host, with a lease that was opened here.

    The caller holds the agent's supervisor lock, because the replica may be replaced. With
    `beside`, a cycle is already running, and the replica is only updated.
    """

    def __init__(
        self, order: HostOrder, place: HostFolder, line: Connection, *, beside: bool = False
    ) -> None:
        self._order, self._place = order, place
        self.register = EngineRegister(order, make_asker(line))
        self.tell = make_tell(place, order.agent)
        self.definition = self._read_local_definition() if beside else self._take_up()
        self.project = place.project(self.definition)
        if beside:
            with self.open_replica().writer(order.agent, wait=STOP_SECONDS) as writer:
                writer.catch_up()

    def _read_local_definition(self) -> AgentDefinition:
        definition = self._place.definition()
        if definition is None:
            raise EngineError(
                "agent",
                "the agent is not on this host yet",
                hint="the brief will be retried once the agent is here",
            )
        return definition

    def _take_up(self) -> AgentDefinition:
        before = self._place.definition()
        replica = ReplicaPosition()
        if before is not None:
            store = self._place.store(self._place.project(before), self.register)
            replica = self._place.read_replica_state(store)
        opened = self.register.take_up(
            self._place.host,
            seen=replica.generation,
            seq=replica.seq,
            held=replica.held,
            defined=self._place.hash_definition(),
        )
        # From here on, run at a lower priority than the worker and agents that are still waiting
        # for a host. If a busy agent delayed the worker's heartbeats, this host would appear dead.
        os.nice(FLEET_NICE)
        definition = opened.definition or before
        if definition is None:
            raise EngineError(
                "agent",
                "the engine has no definition of the agent",
                hint="send it again with `rekindle run`, in a folder with its manifest",
            )
        if opened.definition is not None:
            self._place.define(opened.definition)
        if opened.kept is not None:
            self._place.end_leftover_processes()
            project = self._place.project(definition)
            self._place.receive(self._place.store(project, self.register), opened.kept)
        return definition

    def open_replica(self) -> FileStore:
        """Return the replica's store, without restoring the workspace."""
        return self._place.store(self.project, self.register)

    def store(self) -> FileStore:
        """Return the replica's store, after restoring the pushed workspace on this host."""
        plain = self.open_replica()
        own = HostRegister(
            self.register, plain.folder(self._order.agent), plain.redaction, self.tell
        )
        if not self.definition.remote:
            self._place.work.mkdir(parents=True, exist_ok=True)
            return self._place.store(self.project, own)
        check_remote(self.definition.remote, self._place.path.parent, self._place.floor)
        trail = None if self.definition.worker else self._make_trail()
        store = self._place.store(self.project, own, trail)
        projection = plain.read(self._order.agent).committed
        claim, last = _find_claim(projection), projection.workspace
        if not (claim and last and self._open_work_branch(claim).has(last.revision)):
            recorded = self._bring_workspace(projection, plain)
            claim = self.register.generation
        else:
            recorded = last.revision
        own.push_to(self._open_work_branch(claim), claim, recorded)
        if self.definition.worker is not None:
            bring_inputs(self._place, self.definition.remote, self.definition.worker.inputs)
        return store

    def require_own_workspace(self) -> None:
        self._place.require_own_workspace(self.definition)

    def _make_trail(self) -> HostAuditTrail:
        ref = f"refs/heads/{make_branch_name(self._order.agent)}"
        remote = RemoteRepository(self.definition.remote, ref, self._queue)
        return HostAuditTrail(self._place.work, self._order.agent, remote, self.tell)

    def _open_work_branch(self, claim: int) -> WorkBranch:
        files = list_engine_files(self.project.settings.fleet or FleetSettings())
        return WorkBranch(
            self._place.work,
            remote=self.definition.remote,
            agent=self._order.agent,
            generation=claim,
            host=self._place.host,
            mirrors=self._place.mirrors,
            queue=self._queue,
            base=self.definition.branch,
            search=SecretSearch(
                tuple(self.project.manifest.redact.allow),
                tuple(str(PurePosixPath(self.definition.within) / file) for file in files),
            ),
        )

    @property
    def _queue(self) -> PushQueue:
        fleet = self.project.settings.fleet or FleetSettings()
        return open_queue(self._place.mirrors, self.definition.remote, fleet.pushes_per_minute)

    def _bring_workspace(self, projection: Projection, store: FileStore) -> str:
        """Restore the pushed workspace, and claim its branch to block pushes from other hosts.

        Return the recorded revision.
        """
        workspace = self._open_work_branch(self.register.generation)
        last = projection.workspace
        if last is None and self._has_worked_on_host(projection) and workspace.has_files():
            # The remote was added after the agent had worked here, so its files must not be
            # replaced.
            brought = workspace.adopt()
        else:
            before = PushedWork(last.revision, last.head, last.branch) if last else None
            brought = self._bring_pushed_work(workspace, before)
        for ref in workspace.left:
            self.tell(TroubleReport(f"unpushed work on this host was saved as {ref}"))
        with store.writer(self._order.agent, wait=STOP_SECONDS) as writer:
            writer.append(make_pushed_event(brought, self.register.generation))
        return brought.revision

    def _bring_pushed_work(self, workspace: WorkBranch, before: PushedWork | None) -> PushedWork:
        """Restore the pushed work, even if the engine has forgotten the last push.

        A push of a higher generation belongs either to the agent's next host or to a lease that the
        engine forgot when it was restored from a backup. In the first case, the engine refuses to
        open this lease again. In the second case, continue from that push, because it is the newest
        work.
        """
        try:
            return workspace.bring(before)
        except StalePushError:
            if workspace.successor is None:
                raise
            generation, work = workspace.successor
        self.register.take_up(self._place.host, seen=generation)
        self.tell(
            TroubleReport(f"the engine was restored; work of generation {generation} is kept")
        )
        return self._open_work_branch(self.register.generation).bring(work)

    def _has_worked_on_host(self, projection: Projection) -> bool:
        """Return whether the agent has already worked in its current folder on this host."""
        launched = any(launch.seq > projection.moved.seq for launch in projection.attempts.values())
        return launched and not self.definition.within


def make_tell(place: HostFolder, agent: str) -> Callable[[SupervisorReport], None]:
    """Return a function that appends reports to a background supervisor's output file."""
    path = RekindleFolder(place.path).agent(agent).output

    def append_report(report: SupervisorReport) -> None:
        header = {"ts": clock.read_clock(), "report": REPORT_KINDS[type(report)]}
        line = msgspec.json.encode(header | msgspec.to_builtins(report)) + b"\n"
        with suppress(OSError, RekindleError):  # only people read this file
            fd = durable_files.open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(fd, "ab") as file:
                if file.tell() > FLEET_OUTPUT_BYTES:
                    file.truncate(0)
                file.write(line)

    return append_report


def _find_claim(projection: Projection) -> int:
    """Return the generation for which this host claimed the agent's branch, or 0."""
    last = projection.workspace
    return last.claim if last is not None and last.seq > projection.moved.seq else 0
