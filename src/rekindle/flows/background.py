"""What an agent leaves in the background: recorded while it runs, ended or kept when it ends.

The record is outside the workspace: the supervisor ends what it names, so no agent may write it.
"""

from collections.abc import Callable
from pathlib import Path

from rekindle.documents.background import Record, Recorded
from rekindle.documents.event import LaunchStarted
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Swept
from rekindle.errors import RekindleError
from rekindle.flows.world import Agent, Trouble, World
from rekindle.policy.sessions import Attempts
from rekindle.policy.settings import ORPHAN_SECONDS, RECORD_SECONDS, STOP_SECONDS
from rekindle.ports import Processes
from rekindle.stores import background
from rekindle.thresholds.running import BACKGROUND_COMMAND_CHARACTERS, BACKGROUND_COMMANDS


def end_everything(
    project: Path, agent: str, processes: Processes, attempts: Attempts, *, patience: float
) -> None:
    """End what an agent without a supervisor has left, and what was kept for it."""
    record = background.read(project, agent)
    for mark, one in attempts.items():
        if not one.exit:
            _end_lost(processes, record, mark, one.boot, one.uptime, patience=patience)
    if record.processes:
        processes.end([one.process for one in record.processes], patience=patience)
        background.write(project, agent, Record())


def _end_lost(
    processes: Processes, record: Record, mark: str, boot: str, uptime: float, *, patience: float
) -> Swept:
    """End what is left of a launch whose end no supervisor has seen."""
    is_recorded = record.launch == mark
    recorded = [one.process for one in record.processes if is_recorded and not one.is_kept]
    return processes.end_marked(
        mark,
        boot=boot,
        uptime=uptime,
        patience=patience,
        recorded=recorded,
        program=record.program if is_recorded else "",
    )


class BackgroundProcesses:
    """The processes of one agent beside its own, as its supervisor knows them."""

    def __init__(self, agent: Agent, world: World) -> None:
        self._agent, self._world = agent.name, world
        self._may_control = agent.may_control
        self._always_records = bool(agent.keep) or agent.may_control
        self._record = world.store.background(agent.name)
        self._looked = 0.0
        self._is_told = False

    def watch(self, origin: LaunchStarted, program: int) -> Callable[[], None]:
        """Return what is to be called again and again while a launch runs."""
        identity = self._world.processes.identify(program)
        self._keep_record(self._of(self._kept(), origin.launch, identity))
        self._looked = self._world.elapsed()

        def look() -> None:
            now = self._world.elapsed()
            if now - self._looked >= RECORD_SECONDS:
                self._looked = now
                self._look(origin.launch, origin.boot, origin.uptime)

        return look

    def end(self, origin: LaunchStarted) -> Swept:
        """End what a launch of ours has left, and note what is kept."""
        self._look(origin.launch, origin.boot, origin.uptime)
        swept = self._world.processes.end_marked(
            origin.launch,
            boot=origin.boot,
            uptime=origin.uptime,
            patience=ORPHAN_SECONDS,
            recorded=[one.process for one in self._record.processes if not one.is_kept],
            program=self._record.program,
        )
        self._keep_record(self._of(self._kept()))
        return swept

    def settle(self, mark: str, *, boot: str, uptime: float) -> Swept:
        """End what a launch has left whose supervisor is gone."""
        # What is kept and bears the mark may not be recorded yet.
        self._look(mark, boot, uptime, before=self._record.processes)
        # The agent itself may be among them, told to end by its supervisor's death and still
        # writing its transcript.
        swept = _end_lost(
            self._world.processes, self._record, mark, boot, uptime, patience=STOP_SECONDS
        )
        self._keep_record(self._of(self._kept()))
        return swept

    def end_kept(self) -> Swept:
        """End what was kept: the run is over, or the operator has stopped it."""
        kept = [one.process for one in self._kept()]
        if not kept:
            return Swept()
        swept = self._world.processes.end(kept, patience=STOP_SECONDS)
        self._keep_record(self._of(()))
        return swept

    def told(self, swept: Swept) -> tuple[str, ...]:
        """Return the commands that a session is told of."""
        return tuple(map(self._in_words, swept.commands[:BACKGROUND_COMMANDS]))

    def _look(self, mark: str, boot: str, uptime: float, before: tuple[Recorded, ...] = ()) -> None:
        """Record what the launch has in the background now, with `before` and what was kept."""
        program = self._record.program if self._record.launch == mark else ""
        found = self._world.processes.background(mark, boot=boot, uptime=uptime, program=program)
        since = {one.process: one.since for one in self._record.processes}
        now = self._world.clock()
        new = {
            one.process: Recorded(
                one.process,
                self._in_words(one.command),
                since.get(one.process, now),
                one.is_kept,
            )
            for one in found
        }
        known = {one.process: one for one in (*before, *self._kept())} | new
        self._keep_record(self._of(tuple(known.values()), mark, program))

    def _of(self, processes: tuple[Recorded, ...], launch: str = "", program: str = "") -> Record:
        return Record(launch, program, processes, self._may_control)

    def _kept(self) -> tuple[Recorded, ...]:
        is_alive = self._world.processes.is_alive
        return tuple(one for one in self._record.kept if is_alive(one.process))

    def _in_words(self, command: str) -> str:
        return one_line(self._world.store.redaction.text(command), BACKGROUND_COMMAND_CHARACTERS)

    def _keep_record(self, record: Record) -> None:
        """Write the record if it says something new; most agents never have one."""
        is_empty = not (self._record.processes or record.processes or self._always_records)
        before, self._record = self._record, record
        if is_empty or record == before:
            return
        try:
            self._world.store.record_background(self._agent, record)
        except RekindleError as error:
            # The agent works on: only a supervisor that is killed leaves something unknown now.
            if not self._is_told:
                self._is_told = True
                self._world.tell(Trouble(str(error)))
