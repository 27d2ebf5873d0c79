"""Start, read and control pipeline runs on a fleet."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import msgspec

from rekindle.config import Project
from rekindle.documents.pipelines.pipeline_events import (
    PipelineEnded,
    PipelineResumed,
    PipelineStopped,
)
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import NotFoundError, NotOnFleetError
from rekindle.fleet.commands.clean_fleet_run import clean_fleet_run
from rekindle.fleet.commands.fleet_run_events import FleetRunEvents
from rekindle.fleet.commands.fleet_schedules import keep_pipeline_schedule
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.commands.start_pipeline import register_run
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.operator.command_authors import sign_command
from rekindle.policy.pipelines.build_run_row import build_run_row
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.system import clock, host
from rekindle.thresholds.fleet_limits import FLEET_STATUS_AGENTS
from rekindle.wiring.pipelines.clean_run import CleanedRun
from rekindle.wiring.pipelines.read_runs import RunReading


class FleetRuns:
    """A project's pipeline runs on its fleet."""

    def __init__(self, project: Project, fleet: FleetSettings, store: FleetStore) -> None:
        self._project, self._fleet, self._store = project, fleet, store
        self._client = PipelineClient(store.agents.client)

    def start(self, pipeline: str, text: str) -> RunReading:
        """Start a run of a pipeline that the operator has accepted."""
        keep_pipeline_schedule(self._project, self._fleet, self._store, pipeline)
        registered = register_run(self._project, self._fleet, pipeline, text)
        self._store.wait_for(self._client.begin(registered))
        return make_reading(registered)  # no worker has to be running yet

    def list_runs(self, pipeline: str | None = None) -> list[tuple[str, int]]:
        """Return the pipeline and number of each run, in order."""

        async def read_list() -> list[tuple[str, int]]:
            return [run async for run in self._client.list_runs()]

        names = set(self._project.manifest.pipelines) if pipeline is None else {pipeline}
        return sorted(run for run in self._store.wait_for(read_list()) if run[0] in names)

    def read(self, pipeline: str, run: int) -> RunReading:
        """Return a run. For an open run, this includes what keeps it from continuing."""
        registered = self._store.wait_for(self._client.kept(pipeline, run))
        state = registered.fold()
        if state.ended is not None:
            return make_reading(registered)
        failure = self._store.wait_for(self._client.find_failure(pipeline, run))
        notice = f"a task fails, and the fleet repeats it: {failure}" if failure else ""
        return make_reading(registered, self._read_waiting(state), notice)

    def _read_waiting(self, state: PipelineState) -> dict[str, AgentRow]:
        """Return the rows of workers that wait for a person."""
        names = [worker.agent for _, worker in state.list_running()]
        if not names:
            return {}
        run = f"{state.pipeline} {state.run}"
        command = f"rekindle pipeline stop {run}; rekindle pipeline resume {run}"
        listed = self._store.listed(names if len(names) <= FLEET_STATUS_AGENTS else ())
        rows = {}
        for name in names:
            with suppress(NotOnFleetError):  # removed in the meantime
                if name in listed and listed[name].state == "safe":
                    inputs = RowInputs(now=clock.read_clock(), is_supervised=True)
                    row = build_row(self._store.kept(name).projection, inputs)
                    rows[name] = msgspec.structs.replace(row, command=command, others=())
        return rows

    def read_all(self, pipeline: str | None = None) -> Iterator[RunReading]:
        """Yield the runs of one pipeline, or of all, highest number first."""
        for run in reversed(self.list_runs(pipeline)):
            with suppress(NotFoundError):  # the engine lists a run until it has removed everything
                yield self.read(*run)

    def find(
        self,
        pipeline: str,
        number: int | None,
        fits: Callable[[RunReading], bool] = lambda _: True,
        purpose: str = "",
    ) -> RunReading:
        """Return the run with this number, or the newest run that `fits`.

        Raises:
            NotFoundError: There is no such run. `purpose` describes the run in the message.
        """
        if number is not None:
            return self.read(pipeline, number)
        for reading in self.read_all(pipeline):
            if fits(reading):
                return reading
        raise NotFoundError(
            f"the pipeline {pipeline} has no run {purpose}".rstrip() + " on the fleet",
            hint=f"start one: `rekindle pipeline run {pipeline}`",
        )

    def open_events(self, row: RunRow) -> FleetRunEvents:
        """Return the logs of a run and its workers."""
        return FleetRunEvents(self._store, row.pipeline, row.run)

    def clean(self, reading: RunReading, *, every: bool) -> CleanedRun:
        """Remove a run's workers and other leftovers from the fleet."""
        return clean_fleet_run(self._project, self._store, reading, every=every)

    def submit(self, row: RunRow, event: PipelineStopped | PipelineResumed) -> None:
        """Send the operator's command to a run."""
        signed = sign_command(event, host.identify_author())
        self._store.wait_for(self._client.say(row.pipeline, row.run, signed))


def make_reading(
    registered: RegisteredPipeline, agents: Mapping[str, AgentRow] | None = None, notice: str = ""
) -> RunReading:
    events, state = registered.read_events(), registered.fold()
    ends = [event for event in events if isinstance(event, PipelineEnded)]
    row = build_run_row(
        registered.definition.plan,
        state,
        number=registered.definition.run,
        now=clock.read_clock(),
        agents=agents,
        updated=events[-1].ts,
        why=ends[-1].why if ends and state.ended else "",
        notice=notice,
        remote="origin",
    )
    return RunReading(definition=registered.definition, events=events, state=state, row=row)
