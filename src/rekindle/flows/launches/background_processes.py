"""Record an agent's background processes while it runs, then end them or keep them running.

The record is stored outside the workspace. The supervisor ends every process in the record, so the
agent must not be able to edit the record.
"""

from collections.abc import Callable
from pathlib import Path

from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.background_record import BackgroundRecord, RecordedProcess
from rekindle.documents.launches.launch_types import SweptProcesses
from rekindle.errors import RekindleError
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.projection.sessions import LaunchRecords
from rekindle.policy.settings.runtime_settings import ORPHAN_SECONDS, RECORD_SECONDS, STOP_SECONDS
from rekindle.ports import Processes
from rekindle.stores.folders import background_file
from rekindle.thresholds.supervision import BACKGROUND_COMMAND_CHARACTERS, BACKGROUND_COMMANDS


def end_all_processes(
    project: Path, agent: str, processes: Processes, attempts: LaunchRecords, *, patience: float
) -> None:
    """End all processes that an agent without a supervisor left running or kept."""
    record = background_file.read_background(project, agent)
    for mark, launch in attempts.items():
        if not launch.exit:
            _end_lost_launch(processes, record, mark, launch.boot, launch.uptime, patience=patience)
    if record.processes:
        processes.end([launch.process for launch in record.processes], patience=patience)
        background_file.write_background(project, agent, BackgroundRecord())


def _end_lost_launch(
    processes: Processes,
    record: BackgroundRecord,
    mark: str,
    boot: str,
    uptime: float,
    *,
    patience: float,
) -> SweptProcesses:
    """End the processes of a launch that has no recorded exit."""
    is_recorded = record.launch == mark
    recorded = [
        process.process for process in record.processes if is_recorded and not process.is_kept
    ]
    return processes.end_launch_processes(
        mark,
        boot=boot,
        uptime=uptime,
        patience=patience,
        recorded=recorded,
        program=record.program if is_recorded else "",
    )


class BackgroundProcesses:
    """Tracks one agent's background processes."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent.name, world
        self._may_control = agent.may_control
        self._always_records = bool(agent.keep) or agent.may_control
        self._record = world.store.background(agent.name)
        self._looked = 0.0
        self._has_reported = False

    def watch(self, origin: LaunchStarted, program: int) -> Callable[[], None]:
        """Record the launch's main process, and return a callback to run periodically."""
        identity = self._ports.processes.identify(program)
        self._keep_record(self._make_record(self._list_kept(), origin.launch, identity))
        self._looked = self._ports.elapsed()

        def look() -> None:
            now = self._ports.elapsed()
            if now - self._looked >= RECORD_SECONDS:
                self._looked = now
                self._record_current(origin.launch, origin.boot, origin.uptime)

        return look

    def end(self, origin: LaunchStarted) -> SweptProcesses:
        """End the processes that a launch left running, and record the ones to keep."""
        self._record_current(origin.launch, origin.boot, origin.uptime)
        swept = self._ports.processes.end_launch_processes(
            origin.launch,
            boot=origin.boot,
            uptime=origin.uptime,
            patience=ORPHAN_SECONDS,
            recorded=[process.process for process in self._record.processes if not process.is_kept],
            program=self._record.program,
        )
        self._keep_record(self._make_record(self._list_kept()))
        return swept

    def settle(self, mark: str, *, boot: str, uptime: float) -> SweptProcesses:
        """End the processes of a launch whose supervisor is no longer running."""
        # Some of this launch's kept processes may not be recorded yet.
        self._record_current(mark, boot, uptime, before=self._record.processes)
        # The agent itself may still be running. It received a signal when its supervisor died, and
        # needs time to finish writing its transcript.
        swept = _end_lost_launch(
            self._ports.processes, self._record, mark, boot, uptime, patience=STOP_SECONDS
        )
        self._keep_record(self._make_record(self._list_kept()))
        return swept

    def end_kept_processes(self) -> SweptProcesses:
        """End the kept processes after the run ends or is stopped."""
        kept = [process.process for process in self._list_kept()]
        if not kept:
            return SweptProcesses()
        swept = self._ports.processes.end(kept, patience=STOP_SECONDS)
        self._keep_record(self._make_record(()))
        return swept

    def list_ended_commands(self, swept: SweptProcesses) -> tuple[str, ...]:
        """Return the commands that were ended, to list them in the next session's prompt."""
        return tuple(map(self._describe_command, swept.commands[:BACKGROUND_COMMANDS]))

    def _record_current(
        self, mark: str, boot: str, uptime: float, before: tuple[RecordedProcess, ...] = ()
    ) -> None:
        """Record the running background processes, in addition to `before` and the kept ones."""
        program = self._record.program if self._record.launch == mark else ""
        running = self._ports.processes.background(mark, boot=boot, uptime=uptime, program=program)
        since = {process.process: process.since for process in self._record.processes}
        now = self._ports.clock()
        new = {
            process.process: RecordedProcess(
                process.process,
                self._describe_command(process.command),
                since.get(process.process, now),
                process.is_kept,
            )
            for process in running
        }
        recorded = {process.process: process for process in (*before, *self._list_kept())} | new
        self._keep_record(self._make_record(tuple(recorded.values()), mark, program))

    def _make_record(
        self, processes: tuple[RecordedProcess, ...], launch: str = "", program: str = ""
    ) -> BackgroundRecord:
        return BackgroundRecord(launch, program, processes, self._may_control)

    def _list_kept(self) -> tuple[RecordedProcess, ...]:
        is_alive = self._ports.processes.is_alive
        return tuple(process for process in self._record.kept if is_alive(process.process))

    def _describe_command(self, command: str) -> str:
        return to_one_line(self._ports.store.redaction.text(command), BACKGROUND_COMMAND_CHARACTERS)

    def _keep_record(self, record: BackgroundRecord) -> None:
        """Write the record if it changed. Most agents never need a file."""
        is_empty = not (self._record.processes or record.processes or self._always_records)
        before, self._record = self._record, record
        if is_empty or record == before:
            return
        try:
            self._ports.store.write_background_record(self._agent, record)
        except RekindleError as error:
            # Continue, because the record is needed only if the supervisor is killed.
            if not self._has_reported:
                self._has_reported = True
                self._ports.tell(TroubleReport(str(error)))
