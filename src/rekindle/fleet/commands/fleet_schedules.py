"""Accept and list a project's schedules on its fleet."""

import msgspec

from rekindle.config import Project
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.commands.start_pipeline import define_template
from rekindle.fleet.engine import run_schedules
from rekindle.fleet.pipelines.run_numbers import find_base_branch, find_branch_commit
from rekindle.policy.fleet.scheduled_run import ScheduledOrder, render_fleet_schedule
from rekindle.policy.schedules.schedule_checks import list_schedules
from rekindle.policy.schedules.schedule_rules import decode_schedule, render_schedule
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.stores.folders.schedule_files import ScheduleKind
from rekindle.wiring.schedules.accepted_schedules import list_accepted
from rekindle.wiring.schedules.list_schedules import ScheduleRow

_PAUSED = "paused in the engine, where you can continue it"


def keep_pipeline_schedule(
    project: Project, fleet: FleetSettings, store: FleetStore, name: str
) -> None:
    """Create, change or remove the schedule of a pipeline to match its `every:`.

    Raises:
        UsageError: There is no git remote, or no commit.
        WorkspaceError: `base:` is not a branch on the remote.
    """
    pipeline, client = project.manifest.pipelines[name], store.agents.client
    if pipeline.every is None:
        store.wait_for(run_schedules.drop_schedule(client, "pipelines", name))
        return
    template = define_template(project, fleet, name)
    find_branch_commit(template.agent.remote, find_base_branch(pipeline.base))
    order = ScheduledOrder(
        kind="pipelines",
        name=name,
        schedule=render_fleet_schedule(pipeline.every),
        heartbeat_seconds=float(fleet.heartbeat_timeout),
        pool=fleet.pool,
        pipeline=template,
    )
    store.wait_for(run_schedules.keep_schedule(client, order))


class FleetSchedules:
    def __init__(self, project: Project, fleet: FleetSettings, store: FleetStore) -> None:
        self._project, self._fleet, self._store = project, fleet, store

    def accept(self, kind: ScheduleKind, name: str) -> None:
        """Apply the schedule of an agent or pipeline that the operator has accepted."""
        if kind == "pipelines" and name in self._project.manifest.pipelines:
            keep_pipeline_schedule(self._project, self._fleet, self._store, name)
        elif kind == "agents" and name in self._project.declared_agents:
            self._store.accept(name)
        else:
            client = self._store.agents.client
            self._store.wait_for(run_schedules.drop_schedule(client, kind, name))

    def read(self) -> list[ScheduleRow]:
        """Return the schedules in effect, and those in rekindle.yaml that are not in effect yet."""
        declared = {
            (str(path[0]), str(path[1])): render_fleet_schedule(every)
            for path, every in list_schedules(self._project.manifest)
        }
        places = {(schedule.kind, schedule.name) for schedule in list_accepted(self._project)}
        places |= {("agents", name) for name in self._project.declared_agents}
        places |= {("pipelines", name) for name in self._project.manifest.pipelines}
        is_watched = self._store.has_host()
        rows = [
            self._read_row(kind, name, declared.get((kind, name)), is_watched=is_watched)
            for kind, name in sorted(places)
        ]
        return [row for row in rows if row is not None]

    def _read_row(
        self, kind: str, name: str, declared: str | None, *, is_watched: bool
    ) -> ScheduleRow | None:
        client = self._store.agents.client
        found = self._store.wait_for(run_schedules.read_schedule(client, kind, name))
        schedule = found.schedule if found else declared
        if schedule is None:
            return None
        row = ScheduleRow(
            kind="agents" if kind == "agents" else "pipelines",
            name=name,
            every=render_schedule(decode_schedule(msgspec.json.decode(schedule))),
            accepted=found is not None and declared == schedule,
            watched=is_watched,
        )
        if found is None:
            return row
        return msgspec.structs.replace(
            row,
            next=found.next,
            waiting=found.is_waiting,
            history=found.history,
            error=_PAUSED if found.is_paused else "",
        )
