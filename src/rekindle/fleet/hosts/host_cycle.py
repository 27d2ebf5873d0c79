"""Run one cycle of a fleet agent in a process of its own, with the same flow as on a laptop.

The process commits events through its worker, and ends with it. It has no threads, because a
process that forks to start programs must not have any.
"""

import multiprocessing
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

import msgspec

from rekindle.documents import events
from rekindle.documents.commits.work_commit import PushedWork, make_work_ref
from rekindle.documents.events import AnyEvent
from rekindle.errors import (
    EngineError,
    OwnershipError,
    RekindleError,
    StalePushError,
    SupervisedError,
    WorkspaceError,
)
from rekindle.fleet.agent.host_orders import HostOrder, HostResult
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import EngineRegister, ProcessFailure, make_asker
from rekindle.fleet.hosts.work_branch import WorkBranch
from rekindle.flows.supervision.supervisor_steps import SupervisorSteps
from rekindle.flows.supervisor_ports import REPORT_KINDS, SupervisorReport, TroubleReport
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh, choose_session
from rekindle.policy.fleet import agent_registry
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import select_cycle_launches
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import (
    FLEET_DOCUMENT_BYTES,
    FLEET_FOLD_SECONDS,
    FLEET_NICE,
    STOP_SECONDS,
)
from rekindle.policy.supervision.decide import select_open_launches
from rekindle.policy.supervision.run_moves import CloseCycle, HandOff
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import AgentFolder, RekindleFolder
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.processes import stop_signals
from rekindle.system.processes.child_processes import Interruption
from rekindle.thresholds.fleet_limits import FLEET_OUTPUT_BYTES
from rekindle.wiring import brief_setup
from rekindle.wiring import supervisor_setup as wiring

_BEHIND_WHICH_ANOTHER_GOES_ON = (
    # The cycle's work up to here is not repeated if the host dies afterwards.
    events.LaunchEnded,
    events.CheckpointCommitted,
    events.CycleEnded,
)


class HostRegister:
    """Commits events together with the pushed work and the relay draft that belong to them.

    After such an event another host may continue, and without these it would lose work.
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
        self._claim = 0

    def push_to(self, workspace: WorkBranch, claim: int) -> None:
        self._workspace, self._claim = workspace, claim

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        is_due = any(isinstance(one, _BEHIND_WHICH_ANOTHER_GOES_ON) for one in new)
        pushed = self._push(known) if is_due else ()
        ended = [one.cycle for one in new if isinstance(one, events.LaunchEnded)]
        drafts = self._read_draft(ended[-1]) if ended else {}
        return self._register.commit(known, (*pushed, *new), {**documents, **drafts})

    def _read_draft(self, cycle: int) -> dict[str, bytes]:
        """Return the relay draft that the agent wrote for the next cycle, not checked yet."""
        path = self._folder.draft
        try:
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > FLEET_DOCUMENT_BYTES:
                return {}
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return {}
        # Measured in bytes, like the engine's limit: a refusal would also lose the end of the
        # launch.
        data = self._redaction.text(text).encode()
        return (
            {agent_registry.make_draft_name(cycle): data}
            if len(data) <= FLEET_DOCUMENT_BYTES
            else {}
        )

    def _push(self, known: int) -> tuple[AnyEvent, ...]:
        if self._workspace is None:
            return ()
        try:
            found = self._workspace.push()
        except StalePushError as stale:
            return (self._reclaim_branch(self._workspace, known, stale),)
        except WorkspaceError as error:
            return (self._make_push_failure(str(error)),)
        return (_make_pushed_event(found, self._claim),) if found else ()

    def _reclaim_branch(self, workspace: WorkBranch, known: int, stale: StalePushError) -> AnyEvent:
        """Take back the branch, which a person moved; raise if a successor holds the lease."""
        # This commit fails if another host has the agent by now. Then nothing may be pushed here.
        self._register.commit(known, (), {})
        branch = make_work_ref(stale.agent).removeprefix("refs/heads/")
        how = f"moved to {stale.found[:12]}" if stale.found else "removed"
        changed = f"the branch {branch} was {how} outside Rekindle"
        try:
            found = workspace.reclaim_branch()
        except WorkspaceError as error:
            return self._make_push_failure(f"{changed}, and could not be reclaimed: {error}")
        with_theirs = (
            "; the commits pushed there are in its history, but not in the work"
            if stale.found
            else ""
        )
        self._tell(TroubleReport(f"{changed}, and was reclaimed{with_theirs}"))
        return _make_pushed_event(found, self._claim)

    def _make_push_failure(self, words: str) -> AnyEvent:
        """Report a failed push. The work continues on this host, and the next push includes it."""
        self._tell(TroubleReport(words))
        return events.WorkspacePushFailed(ts=clock.read_clock(), words=words)


class HostedAgent:
    """An agent on this host whose lease was opened here.

    The creator holds the agent's supervisor lock, because the replica may be replaced. With
    `beside`, a cycle is running: its replica is only brought up to date.
    """

    def __init__(
        self, order: HostOrder, place: HostFolder, line: Connection, *, beside: bool = False
    ) -> None:
        self._order, self._place = order, place
        self.register = EngineRegister(order.agent, order.generation, make_asker(line))
        self.tell = _make_tell(place, order.agent)
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
                "the agent has not arrived on this host yet",
                hint="the brief is retried after it has arrived",
            )
        return definition

    def _take_up(self) -> AgentDefinition:
        before = self._place.definition()
        seq, found = 0, ""
        if before is not None:
            store = self._place.store(self._place.project(before), self.register)
            seq, found = self._place.held(store)
        opened = self.register.take_up(self._place.host, seq, found, self._place.defined())
        # From here on, yield to agents that still wait for a host, and to the worker: if a busy
        # agent delayed its heartbeats, this host would look dead.
        os.nice(FLEET_NICE)
        definition = opened.definition or before
        if definition is None:
            raise EngineError(
                "agent",
                "the engine has no definition of the agent",
                hint="send it again: `rekindle run` with its manifest",
            )
        if opened.definition is not None:
            self._place.define(opened.definition)
        if opened.kept is not None:
            self._place.end_leftover_processes()
            project = self._place.project(definition)
            self._place.receive(self._place.store(project, self.register), opened.kept)
        return definition

    def open_replica(self) -> FileStore:
        """Return the replica's store."""
        return self._place.store(self.project, self.register)

    def store(self) -> FileStore:
        """Return the replica's store, after bringing the pushed workspace to this host."""
        plain = self.open_replica()
        own = HostRegister(
            self.register, plain.folder(self._order.agent), plain.redaction, self.tell
        )
        store = self._place.store(self.project, own)
        if not self.definition.remote:
            self._place.work.mkdir(parents=True, exist_ok=True)
            return store
        known = plain.read(self._order.agent).committed
        claim, last = _find_claim(known), known.workspace
        if not (claim and last and self._open_work_branch(claim).has(last.revision)):
            claim = self._order.generation
            self._bring_workspace(self._open_work_branch(claim), known, plain)
        own.push_to(self._open_work_branch(claim), claim)
        return store

    def require_own_workspace(self) -> None:
        self._place.require_own_workspace(self.definition)

    def _open_work_branch(self, claim: int) -> WorkBranch:
        return WorkBranch(
            self._place.work,
            remote=self.definition.remote,
            agent=self._order.agent,
            generation=claim,
            host=self._place.host,
        )

    def _bring_workspace(self, workspace: WorkBranch, known: Projection, store: FileStore) -> None:
        """Restore the pushed workspace, and claim its branch against pushes of other hosts."""
        last = known.workspace
        if last is None and self._has_worked_on_host(known) and workspace.has_files():
            # A remote was added after the agent had worked here, so its files must not be replaced.
            brought = workspace.adopt()
        else:
            before = PushedWork(last.revision, last.head, last.branch) if last else None
            brought = workspace.bring(before)
        for ref in workspace.left:
            self.tell(TroubleReport(f"work on this host that was never pushed is kept as {ref}"))
        with store.writer(self._order.agent, wait=STOP_SECONDS) as writer:
            writer.append(_make_pushed_event(brought, self._order.generation))

    def _has_worked_on_host(self, known: Projection) -> bool:
        """Return whether the agent has worked on this host, in the folder it works in now."""
        launched = any(one.seq > known.moved.seq for one in known.attempts.values())
        return launched and not self.definition.within


def run_cycle(order: HostOrder, place: HostFolder, line: Connection) -> None:
    """Run one cycle, or the part of it that needs no waiting."""
    _prepare_process()

    def run() -> HostResult:
        # Locked before anything is brought here, because the previous lease's process may still be
        # ending.
        with place.supervising(STOP_SECONDS) as is_alone:
            if not is_alone:
                raise SupervisedError(order.agent)
            return _run_steps(HostedAgent(order, place, line), order, interruption)

    with Interruption() as interruption:
        _send_result(line, run)


def write_brief(order: HostOrder, place: HostFolder, line: Connection) -> None:
    _prepare_process()

    def write() -> HostResult:
        with place.supervising(0) as is_alone:
            here = HostedAgent(order, place, line, beside=not is_alone)
        store = here.open_replica()  # a brief only reads the work
        brief_setup.make_brief_writer(here.project, store, order.agent, by_hand=False).write()
        return HostResult(store.read(order.agent).committed.seq)

    _send_result(line, write)


def _run_steps(here: HostedAgent, order: HostOrder, interruption: Interruption) -> HostResult:
    store = here.store()
    here.require_own_workspace()
    steps = wiring.make_steps(
        here.project,
        store,
        order.agent,
        here.tell,
        interruption,
        fold_every=FLEET_FOLD_SECONDS,
    )
    # If a launch has no recorded end, the engine could not know which wait to apply.
    is_first = all(one.exit for one in select_open_launches(steps.log.known()))
    steps.cycle.settle()
    try:
        while not interruption.count and _run_step(steps, is_first=is_first):
            is_first = False
    finally:
        steps.cycle.end_kept_processes()  # another host may run the next cycle
    return HostResult(steps.log.known().seq, is_leaving=bool(interruption.count))


def _run_step(steps: SupervisorSteps, *, is_first: bool) -> bool:
    """Take one step; return False if the cycle ended or the engine has to decide the next step."""
    known = steps.log.known()
    move = steps.decide(known)
    if is_first and isinstance(move, WaitUntil):
        # The engine waited before it granted the lease, so only this host's clock is behind.
        move = choose_session(select_open_launches(known))
    match move:
        case StartFresh() | ResumeSession() as step:
            steps.launch(step, known)
            return True
        case HandOff():
            halts = steps.hand_off_session(
                select_cycle_launches(known.attempts, known.current_cycle)
            )
            if halts is not None:
                steps.enter_safe_mode(known.current_cycle, halts)
            return halts is None
        case CloseCycle():
            steps.end(known.current_cycle)
    return False


def _send_result(line: Connection, work: Callable[[], HostResult]) -> None:
    """Send the result to the worker. If the worker is gone, the engine notices by itself."""
    try:
        said: HostResult | ProcessFailure = work()
    except RekindleError as error:
        said = ProcessFailure(str(error), error.hint, isinstance(error, OwnershipError))
    except Exception as error:  # noqa: BLE001 - the one place that turns a bug into words here
        said = ProcessFailure(f"a bug in Rekindle: {type(error).__name__}: {error}")
    try:
        line.send(said)
    except OSError:
        raise SystemExit(1) from None


def _prepare_process() -> None:
    """Leave the worker's process group, and end when the worker ends.

    Keys pressed at the worker's terminal must not reach the agent. The parent of this process is
    the fork server, not the worker, and the fork server lives as long as any of its children.
    """
    os.setpgid(0, 0)
    worker = multiprocessing.parent_process()
    if worker is not None:
        stop_signals.end_with_pipe(worker.sentinel)


def _make_tell(place: HostFolder, agent: str) -> Callable[[SupervisorReport], None]:
    """Return a function that appends reports to the output file of a background supervisor."""
    path = RekindleFolder(place.path).agent(agent).output

    def tell(report: SupervisorReport) -> None:
        said = {"ts": clock.read_clock(), "report": REPORT_KINDS[type(report)]}
        line = msgspec.json.encode(said | msgspec.to_builtins(report)) + b"\n"
        with suppress(OSError, RekindleError):  # the file is only for people
            fd = durable_files.open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(fd, "ab") as file:
                if file.tell() > FLEET_OUTPUT_BYTES:
                    file.truncate(0)
                file.write(line)

    return tell


def _find_claim(known: Projection) -> int:
    """Return the generation for which this host claimed the agent's branch; 0 if it did not."""
    last = known.workspace
    return last.claim if last is not None and last.seq > known.moved.seq else 0


def _make_pushed_event(found: PushedWork, claim: int) -> events.WorkspacePushed:
    return events.WorkspacePushed(
        ts=clock.read_clock(),
        revision=found.revision,
        head=found.head,
        branch=found.branch,
        claim=claim,
    )
