"""A cycle of an agent on a host of a fleet, in a process of its own: the laptop's own flow.

It asks its worker to have facts counted, and ends with it. It has no threads: whoever starts
programs must have none.
"""

import multiprocessing
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

import msgspec

from rekindle.documents import events
from rekindle.documents.commits.work_commit import (
    PushedWork,
    make_work_ref,
)
from rekindle.documents.events import AnyEvent
from rekindle.errors import (
    EngineError,
    OwnershipError,
    RekindleError,
    StalePushError,
    SupervisedError,
    WorkspaceError,
)
from rekindle.fleet.agent.host_orders import (
    HostOrder,
    HostResult,
)
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import (
    EngineRegister,
    ProcessFailure,
    make_asker,
)
from rekindle.fleet.hosts.work_branch import WorkBranch
from rekindle.flows.supervision.supervisor_steps import SupervisorSteps
from rekindle.flows.supervisor_ports import (
    REPORT_KINDS,
    SupervisorReport,
    TroubleReport,
)
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.session_choice import (
    ResumeSession,
    StartFresh,
    choose_session,
)
from rekindle.policy.fleet import agent_registry
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.projection.fold import Projection
from rekindle.policy.projection.sessions import select_cycle_launches
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import (
    FLEET_DOCUMENT_BYTES,
    FLEET_FOLD_SECONDS,
    FLEET_NICE,
    STOP_SECONDS,
)
from rekindle.policy.supervision.decide import select_open_launches
from rekindle.policy.supervision.run_moves import (
    CloseCycle,
    HandOff,
)
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import (
    AgentFolder,
    RekindleFolder,
)
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.processes import stop_signals
from rekindle.system.processes.child_processes import Interruption
from rekindle.thresholds.fleet_limits import FLEET_OUTPUT_BYTES
from rekindle.wiring import brief_setup
from rekindle.wiring import supervisor_setup as wiring

_BEHIND_WHICH_ANOTHER_GOES_ON = (
    # A host that dies behind this has done the cycle's work: nobody does it again.
    events.LaunchEnded,
    events.CheckpointCommitted,
    events.CycleEnded,
)


class HostRegister:
    """Sends along what must not be known without it: the work, and the relay that was written.

    Behind such a fact another host may go on: without them it would lose some.
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
        """What the agent has written for the next cycle, before anybody has looked at it."""
        path = self._folder.draft
        try:
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > FLEET_DOCUMENT_BYTES:
                return {}
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return {}
        # In bytes, as the engine counts: refused there, the end of its launch would be too.
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
        """The branch is not where we left it: by a successor, or by a person, who has no lease."""
        # Refused where another host has the agent by now: what is pushed here must not count then.
        self._register.commit(known, (), {})
        branch = make_work_ref(stale.agent).removeprefix("refs/heads/")
        how = f"moved to {stale.found[:12]}" if stale.found else "removed"
        changed = f"the branch {branch} was {how} by somebody else"
        try:
            found = workspace.reclaim_branch()
        except WorkspaceError as error:
            return self._make_push_failure(f"{changed}, and could not be taken again: {error}")
        with_theirs = "; what they pushed is in its history, not in the work" if stale.found else ""
        self._tell(TroubleReport(f"{changed}, and was taken again{with_theirs}"))
        return _make_pushed_event(found, self._claim)

    def _make_push_failure(self, words: str) -> AnyEvent:
        """The work is here, and goes on here; the next push has it all."""
        self._tell(TroubleReport(words))
        return events.WorkspacePushFailed(ts=clock.read_clock(), words=words)


class HostedAgent:
    """An agent on this host, with its lease taken up.

    Whoever makes one supervises the agent here: its replica may be replaced. `beside` a cycle that
    runs it is left alone, and only caught up with.
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
                "the agent is only coming to this host",
                hint="it is tried again when it is here",
            )
        return definition

    def _take_up(self) -> AgentDefinition:
        before = self._place.definition()
        seq, found = 0, ""
        if before is not None:
            store = self._place.store(self._place.project(before), self.register)
            seq, found = self._place.held(store)
        opened = self.register.take_up(self._place.host, seq, found, self._place.defined())
        # Whoever has its agent waits for those that are still without a host, and for the worker,
        # whose heartbeats say that this one lives: a busy agent must not make it look dead.
        os.nice(FLEET_NICE)
        definition = opened.definition or before
        if definition is None:
            raise EngineError(
                "agent",
                "the engine says nothing of how the agent is set up",
                hint="set it up again: `rekindle run` with its manifest",
            )
        if opened.definition is not None:
            self._place.define(opened.definition)
        if opened.kept is not None:
            self._place.end_leftover_processes()
            project = self._place.project(definition)
            self._place.receive(self._place.store(project, self.register), opened.kept)
        return definition

    def open_replica(self) -> FileStore:
        """The replica."""
        return self._place.store(self.project, self.register)

    def store(self) -> FileStore:
        """The replica, with the workspace as it was pushed."""
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

    def _open_work_branch(self, claim: int) -> WorkBranch:
        return WorkBranch(
            self._place.work,
            remote=self.definition.remote,
            agent=self._order.agent,
            generation=claim,
            host=self._place.host,
        )

    def _bring_workspace(self, workspace: WorkBranch, known: Projection, store: FileStore) -> None:
        """As it was pushed; from here on nobody else's push counts."""
        last = known.workspace
        if last is None and self._has_worked_on_host(known) and workspace.has_files():
            # Its owner has added a remote since: what the agent has made is not replaced by that.
            brought = workspace.adopt()
        else:
            before = PushedWork(last.revision, last.head, last.branch) if last else None
            brought = workspace.bring(before)
        for ref in workspace.left:
            self.tell(TroubleReport(f"what was here, and was never pushed, is kept as {ref}"))
        with store.writer(self._order.agent, wait=STOP_SECONDS) as writer:
            writer.append(_make_pushed_event(brought, self._order.generation))

    def _has_worked_on_host(self, known: Projection) -> bool:
        """Since it came to this host, and in the folder that it works in now."""
        launched = any(one.seq > known.moved.seq for one in known.attempts.values())
        return launched and not self.definition.within


def run_cycle(order: HostOrder, place: HostFolder, line: Connection) -> None:
    """One cycle, or as much of it as can be done without waiting for anything."""
    _prepare_process()

    def run() -> HostResult:
        # Before anything is brought here: whoever had the lease before may still be ending.
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
        store = here.open_replica()  # it only looks at the work
        brief_setup.make_brief_writer(here.project, store, order.agent, by_hand=False).write()
        return HostResult(store.read(order.agent).committed.seq)

    _send_result(line, write)


def _run_steps(here: HostedAgent, order: HostOrder, interruption: Interruption) -> HostResult:
    store = here.store()
    steps = wiring.make_steps(
        here.project,
        store,
        order.agent,
        here.tell,
        interruption,
        fold_every=FLEET_FOLD_SECONDS,
    )
    # With one that nobody has seen end the engine could not know for what to wait.
    is_first = all(one.exit for one in select_open_launches(steps.cycle.known()))
    steps.cycle.settle()
    try:
        while not interruption.count and _run_step(steps, is_first=is_first):
            is_first = False
    finally:
        steps.cycle.end_kept_processes()  # the next cycle may be another host's
    return HostResult(steps.cycle.known().seq, is_leaving=bool(interruption.count))


def _run_step(steps: SupervisorSteps, *, is_first: bool) -> bool:
    """Do the next thing; False: what comes next is not for a host to decide, or the cycle ended."""
    known = steps.cycle.known()
    move = steps.decide(known)
    if is_first and isinstance(move, WaitUntil):
        # The engine has waited before it gave us the lease; a clock that says "not yet" is ours.
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
    """Say what came of it; a worker that is gone hears it from the engine."""
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
    """Be a process of its own: what is typed at the worker's terminal is not for the agent.

    It ends with the worker, which is not its parent: the process that forked it is, and that lives
    as long as any of its children does.
    """
    os.setpgid(0, 0)
    worker = multiprocessing.parent_process()
    if worker is not None:
        stop_signals.end_with_pipe(worker.sentinel)


def _make_tell(place: HostFolder, agent: str) -> Callable[[SupervisorReport], None]:
    """What a supervisor in the background would say goes where it would."""
    path = RekindleFolder(place.path).agent(agent).output

    def tell(report: SupervisorReport) -> None:
        said = {"ts": clock.read_clock(), "report": REPORT_KINDS[type(report)]}
        line = msgspec.json.encode(said | msgspec.to_builtins(report)) + b"\n"
        with suppress(OSError, RekindleError):  # nobody's work depends on it
            fd = durable_files.open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(fd, "ab") as file:
                if file.tell() > FLEET_OUTPUT_BYTES:
                    file.truncate(0)
                file.write(line)

    return tell


def _find_claim(known: Projection) -> int:
    """For which generation this host has claimed the agent's branch; 0: it has not."""
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
