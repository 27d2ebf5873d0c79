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

from rekindle.documents import event as events
from rekindle.documents.event import AnyEvent
from rekindle.documents.workspace import Pushed, work_ref
from rekindle.errors import (
    EngineError,
    OwnershipError,
    RekindleError,
    StalePushError,
    SupervisedError,
    WorkspaceError,
)
from rekindle.fleet.orders import Order, Ran
from rekindle.fleet.place import Place
from rekindle.fleet.wire import EngineRegister, Failed, asking
from rekindle.fleet.workspace import Workspace
from rekindle.flows.steps import Steps
from rekindle.flows.world import REPORTS, Report, Trouble
from rekindle.policy import register
from rekindle.policy.cycle import Fresh, Resume, next_step
from rekindle.policy.fold import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.register import Definition
from rekindle.policy.restart import Wait
from rekindle.policy.run import End, HandOn
from rekindle.policy.sessions import of_cycle
from rekindle.policy.settings import (
    FLEET_DOCUMENT_BYTES,
    FLEET_FOLD_SECONDS,
    FLEET_NICE,
    STOP_SECONDS,
)
from rekindle.policy.supervise import tried
from rekindle.stores.files import FileStore
from rekindle.stores.files.layout import AgentFolder, Root
from rekindle.system import clock, disk, signals
from rekindle.system.processes import Interruption
from rekindle.thresholds.fleet import FLEET_OUTPUT_BYTES
from rekindle.wiring import brief
from rekindle.wiring import run as wiring

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
        tell: Callable[[Report], None],
    ) -> None:
        self._register, self._folder, self._redaction = register, folder, redaction
        self._tell = tell
        self._workspace: Workspace | None = None
        self._claim = 0

    def push_to(self, workspace: Workspace, claim: int) -> None:
        self._workspace, self._claim = workspace, claim

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        is_due = any(isinstance(one, _BEHIND_WHICH_ANOTHER_GOES_ON) for one in new)
        pushed = self._push(known) if is_due else ()
        ended = [one.cycle for one in new if isinstance(one, events.LaunchEnded)]
        drafts = self._draft(ended[-1]) if ended else {}
        return self._register.commit(known, (*pushed, *new), {**documents, **drafts})

    def _draft(self, cycle: int) -> dict[str, bytes]:
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
        return {register.draft(cycle): data} if len(data) <= FLEET_DOCUMENT_BYTES else {}

    def _push(self, known: int) -> tuple[AnyEvent, ...]:
        if self._workspace is None:
            return ()
        try:
            found = self._workspace.push()
        except StalePushError as stale:
            return (self._take_again(self._workspace, known, stale),)
        except WorkspaceError as error:
            return (self._kept(str(error)),)
        return (_pushed(found, self._claim),) if found else ()

    def _take_again(self, workspace: Workspace, known: int, stale: StalePushError) -> AnyEvent:
        """The branch is not where we left it: by a successor, or by a person, who has no lease."""
        # Refused where another host has the agent by now: what is pushed here must not count then.
        self._register.commit(known, (), {})
        branch = work_ref(stale.agent).removeprefix("refs/heads/")
        how = f"moved to {stale.found[:12]}" if stale.found else "removed"
        changed = f"the branch {branch} was {how} by somebody else"
        try:
            found = workspace.take_again()
        except WorkspaceError as error:
            return self._kept(f"{changed}, and could not be taken again: {error}")
        with_theirs = "; what they pushed is in its history, not in the work" if stale.found else ""
        self._tell(Trouble(f"{changed}, and was taken again{with_theirs}"))
        return _pushed(found, self._claim)

    def _kept(self, words: str) -> AnyEvent:
        """The work is here, and goes on here; the next push has it all."""
        self._tell(Trouble(words))
        return events.WorkspaceKept(ts=clock.now(), words=words)


class OnHost:
    """An agent on this host, with its lease taken up.

    Whoever makes one supervises the agent here: its replica may be replaced. `beside` a cycle that
    runs it is left alone, and only caught up with.
    """

    def __init__(
        self, order: Order, place: Place, line: Connection, *, beside: bool = False
    ) -> None:
        self._order, self._place = order, place
        self.register = EngineRegister(order.agent, order.generation, asking(line))
        self.tell = _telling(place, order.agent)
        self.definition = self._as_it_is() if beside else self._take_up()
        self.project = place.project(self.definition)
        if beside:
            with self.plain_store().writer(order.agent, wait=STOP_SECONDS) as writer:
                writer.catch_up()

    def _as_it_is(self) -> Definition:
        definition = self._place.definition()
        if definition is None:
            raise EngineError(
                "agent",
                "the agent is only coming to this host",
                hint="it is tried again when it is here",
            )
        return definition

    def _take_up(self) -> Definition:
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
            self._place.end_what_is_left()
            project = self._place.project(definition)
            self._place.receive(self._place.store(project, self.register), opened.kept)
        return definition

    def plain_store(self) -> FileStore:
        """The replica."""
        return self._place.store(self.project, self.register)

    def store(self) -> FileStore:
        """The replica, with the workspace as it was pushed."""
        plain = self.plain_store()
        own = HostRegister(
            self.register, plain.folder(self._order.agent), plain.redaction, self.tell
        )
        store = self._place.store(self.project, own)
        if not self.definition.remote:
            self._place.work.mkdir(parents=True, exist_ok=True)
            return store
        known = plain.read(self._order.agent).committed
        claim, last = _claim(known), known.workspace
        if not (claim and last and self._workspace(claim).has(last.revision)):
            claim = self._order.generation
            self._bring(self._workspace(claim), known, plain)
        own.push_to(self._workspace(claim), claim)
        return store

    def _workspace(self, claim: int) -> Workspace:
        return Workspace(
            self._place.work,
            remote=self.definition.remote,
            agent=self._order.agent,
            generation=claim,
            host=self._place.host,
        )

    def _bring(self, workspace: Workspace, known: Projection, store: FileStore) -> None:
        """As it was pushed; from here on nobody else's push counts."""
        last = known.workspace
        if last is None and self._has_worked_here(known) and workspace.has_files():
            # Its owner has added a remote since: what the agent has made is not replaced by that.
            brought = workspace.adopt()
        else:
            before = Pushed(last.revision, last.head, last.branch) if last else None
            brought = workspace.bring(before)
        for ref in workspace.left:
            self.tell(Trouble(f"what was here, and was never pushed, is kept as {ref}"))
        with store.writer(self._order.agent, wait=STOP_SECONDS) as writer:
            writer.append(_pushed(brought, self._order.generation))

    def _has_worked_here(self, known: Projection) -> bool:
        """Since it came to this host, and in the folder that it works in now."""
        launched = any(one.seq > known.moved.seq for one in known.attempts.values())
        return launched and not self.definition.within


def run_cycle(order: Order, place: Place, line: Connection) -> None:
    """One cycle, or as much of it as can be done without waiting for anything."""
    _begin()

    def run() -> Ran:
        # Before anything is brought here: whoever had the lease before may still be ending.
        with place.supervising(STOP_SECONDS) as is_alone:
            if not is_alone:
                raise SupervisedError(order.agent)
            return _cycle(OnHost(order, place, line), order, interruption)

    with Interruption() as interruption:
        _answer(line, run)


def write_brief(order: Order, place: Place, line: Connection) -> None:
    _begin()

    def write() -> Ran:
        with place.supervising(0) as is_alone:
            here = OnHost(order, place, line, beside=not is_alone)
        store = here.plain_store()  # it only looks at the work
        brief.writing(here.project, store, order.agent, by_hand=False).write()
        return Ran(store.read(order.agent).committed.seq)

    _answer(line, write)


def _cycle(here: OnHost, order: Order, interruption: Interruption) -> Ran:
    store = here.store()
    steps = wiring.steps(
        here.project,
        store,
        order.agent,
        here.tell,
        interruption,
        fold_every=FLEET_FOLD_SECONDS,
    )
    # With one that nobody has seen end the engine could not know for what to wait.
    is_first = all(one.exit for one in tried(steps.cycle.known()))
    steps.cycle.settle()
    try:
        while not interruption.count and _step(steps, is_first=is_first):
            is_first = False
    finally:
        steps.cycle.end_kept()  # the next cycle may be another host's
    return Ran(steps.cycle.known().seq, is_leaving=bool(interruption.count))


def _step(steps: Steps, *, is_first: bool) -> bool:
    """Do the next thing; False: what comes next is not for a host to decide, or the cycle ended."""
    known = steps.cycle.known()
    move = steps.decide(known)
    if is_first and isinstance(move, Wait):
        # The engine has waited before it gave us the lease; a clock that says "not yet" is ours.
        move = next_step(tried(known))
    match move:
        case Fresh() | Resume() as step:
            steps.launch(step, known)
            return True
        case HandOn():
            halts = steps.hand_on(of_cycle(known.attempts, known.cycle_now))
            if halts is not None:
                steps.enter_safe_mode(known.cycle_now, halts)
            return halts is None
        case End():
            steps.end(known.cycle_now)
    return False


def _answer(line: Connection, work: Callable[[], Ran]) -> None:
    """Say what came of it; a worker that is gone hears it from the engine."""
    try:
        said: Ran | Failed = work()
    except RekindleError as error:
        said = Failed(str(error), error.hint, isinstance(error, OwnershipError))
    except Exception as error:  # noqa: BLE001 - the one place that turns a bug into words here
        said = Failed(f"a bug in Rekindle: {type(error).__name__}: {error}")
    try:
        line.send(said)
    except OSError:
        raise SystemExit(1) from None


def _begin() -> None:
    """Be a process of its own: what is typed at the worker's terminal is not for the agent.

    It ends with the worker, which is not its parent: the process that forked it is, and that lives
    as long as any of its children does.
    """
    os.setpgid(0, 0)
    worker = multiprocessing.parent_process()
    if worker is not None:
        signals.end_when_closed(worker.sentinel)


def _telling(place: Place, agent: str) -> Callable[[Report], None]:
    """What a supervisor in the background would say goes where it would."""
    path = Root(place.path).agent(agent).output

    def tell(report: Report) -> None:
        said = {"ts": clock.now(), "report": REPORTS[type(report)]}
        line = msgspec.json.encode(said | msgspec.to_builtins(report)) + b"\n"
        with suppress(OSError, RekindleError):  # nobody's work depends on it
            fd = disk.open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(fd, "ab") as file:
                if file.tell() > FLEET_OUTPUT_BYTES:
                    file.truncate(0)
                file.write(line)

    return tell


def _claim(known: Projection) -> int:
    """For which generation this host has claimed the agent's branch; 0: it has not."""
    last = known.workspace
    return last.claim if last is not None and last.seq > known.moved.seq else 0


def _pushed(found: Pushed, claim: int) -> events.WorkspacePushed:
    return events.WorkspacePushed(
        ts=clock.now(),
        revision=found.revision,
        head=found.head,
        branch=found.branch,
        claim=claim,
    )
