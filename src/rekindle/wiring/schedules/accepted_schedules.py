"""List the schedules that the operator has accepted.

The daemon follows these schedules instead of rekindle.yaml, which an agent may have changed. A
change takes effect when the operator accepts it. Until then, runs are skipped, and the record shows
why.
"""

from datetime import datetime

import msgspec

from rekindle.config import Project
from rekindle.documents.manifest_schedules import Schedule
from rekindle.policy.schedules.decide_run import RunRules
from rekindle.policy.schedules.schedule_rules import decode_schedule, make_rules
from rekindle.stores.folders import private_files, trust_records
from rekindle.stores.folders.schedule_files import ScheduleKind
from rekindle.system import clock


class AcceptedSchedule(msgspec.Struct, frozen=True):
    kind: ScheduleKind
    name: str
    every: Schedule | str
    since: datetime
    """Time when the operator accepted the settings."""

    def make_rules(self) -> RunRules:
        """Return the schedule's rules.

        Raises:
            ScheduleError: The time zone no longer exists on this host.
        """
        return make_rules(self.name, self.every, clock.find_zone)


def list_accepted(project: Project) -> list[AcceptedSchedule]:
    """Return the accepted schedules, even those of agents that are no longer in rekindle.yaml."""
    private = private_files.find_private_project(project.path)
    # Skip the workers of pipelines: they have no schedules, and there may be many.
    workers = project.manifest.agents.keys() - set(project.declared_agents)
    names = [name for name in private.agents() if name not in workers]
    records = [("agents", name, private.agent(name).settings) for name in names]
    records += [
        ("pipelines", name, private.pipeline_settings(name)) for name in private.list_pipelines()
    ]
    schedules = list[AcceptedSchedule]()
    for kind, name, path in records:
        accepted = trust_records.read_accepted(path)
        every = accepted.settings.get(f"{kind}.{name}.every") if accepted else None
        if accepted is None or every is None:
            continue
        try:
            schedules.append(
                AcceptedSchedule(
                    "agents" if kind == "agents" else "pipelines",
                    name,
                    decode_schedule(every),
                    accepted.at,
                )
            )
        except msgspec.MsgspecError:
            continue  # written by a newer version
    return schedules


def forget_schedule(project: Project, kind: ScheduleKind, name: str) -> None:
    """Remove the accepted schedule of an agent or pipeline that the operator has removed."""
    private = private_files.find_private_project(project.path)
    path = private.agent(name).settings if kind == "agents" else private.pipeline_settings(name)
    accepted = trust_records.read_accepted(path)
    if accepted is None:
        return
    key = f"{kind}.{name}.every"
    settings = {other: value for other, value in accepted.settings.items() if other != key}
    trust_records.record_settings(path, settings, clock.read_clock())


def find_addresses(project: Project, schedule: AcceptedSchedule) -> list[str]:
    """Return the accepted `notify:` addresses of an agent or a pipeline."""
    private = private_files.find_private_project(project.path)
    is_agent, name = schedule.kind == "agents", schedule.name
    path = private.agent(name).settings if is_agent else private.pipeline_settings(name)
    return list((trust_records.read_settings(path) or {}).get("notify", []))
