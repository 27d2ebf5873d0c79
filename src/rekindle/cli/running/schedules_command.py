"""`rekindle schedules`: show and accept schedules."""

from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from rekindle import config
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_fleet,
    require_operator,
)
from rekindle.cli.output import echo, print_json, style_text
from rekindle.cli.reports.schedule_lines import list_schedule_warnings, render_next
from rekindle.cli.trust_prompt import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.errors import UsageError
from rekindle.policy.schedules.describe_outcomes import render_outcome
from rekindle.system import clock
from rekindle.wiring.access.trust_checks import accept_fleet, accept_pipeline, accept_settings
from rekindle.wiring.open_store import open_store
from rekindle.wiring.schedules.accepted_schedules import forget_schedule
from rekindle.wiring.schedules.agent_runs import inspect_agent
from rekindle.wiring.schedules.list_schedules import ScheduleRow, read_schedules
from rekindle.wiring.schedules.pipeline_runs import inspect_pipeline

if TYPE_CHECKING:
    from rekindle.fleet.commands.fleet_schedules import FleetSchedules


@click.command()
@click.argument("name", required=False)
@click.option(
    "--accept", is_flag=True, help="Accept the settings of scheduled agents and pipelines."
)
@trust_option
@json_option
def schedules(name: str | None, accept: bool, trust: bool, as_json: bool) -> None:
    """Show the schedules of agents and pipelines, and their next runs.

    With NAME, show only that agent or pipeline, along with its last runs. A schedule in
    rekindle.yaml (`every:`) takes effect when you accept the settings of its agent or pipeline. Use
    --accept to accept them without starting a run. The daemon, or the engine of a fleet, then
    starts each run when it is due.
    """
    project = config.load_project(find_current_folder())
    if accept:
        require_operator(project)
        ensure_trust(project, trust=trust)
    fleet = _open_fleet(project, accept=accept)
    read = fleet.read if fleet else partial(read_schedules, project)
    if accept:
        for row in read():
            if name in {None, row.name}:
                _accept_schedule(project, row)
                if fleet:
                    fleet.accept(row.kind, row.name)
    rows = [row for row in read() if name in {None, row.name}]
    if name is not None and not rows:
        raise UsageError(
            f"{name} has no schedule", hint="add `every:` to the agent or pipeline in rekindle.yaml"
        )
    if as_json:
        print_json({"schedules": [msgspec.to_builtins(row) for row in rows]})
        return
    if not rows:
        echo("There are no schedules. To start an agent or a pipeline regularly, add `every:`.")
    for row in rows:
        _print_row(row, with_history=name is not None, is_fleet=fleet is not None)
        _print_obstacle(project, row, is_checked=accept and fleet is None)


def _open_fleet(project: Project, *, accept: bool) -> "FleetSchedules | None":
    """Return the schedules on the project's fleet, or None if there is no fleet."""
    fleet = project.settings.fleet
    if fleet is None:
        return None
    if accept:
        print_changes("fleet", accept_fleet(project))
    store = open_fleet(project, fleet)
    from rekindle.fleet.commands.fleet_schedules import FleetSchedules  # noqa: PLC0415 - needs the fleet extra

    return FleetSchedules(project, fleet, store)


def _accept_schedule(project: Project, row: ScheduleRow) -> None:
    """Accept the settings of an agent or pipeline that has or had a schedule."""
    declared = project.declared_agents if row.kind == "agents" else [*project.manifest.pipelines]
    if row.name not in declared:
        forget_schedule(project, row.kind, row.name)
    elif row.kind == "agents":
        print_changes(row.name, accept_settings(project, row.name))
    else:
        print_changes(row.name, accept_pipeline(project, row.name))


def _print_obstacle(project: Project, row: ScheduleRow, *, is_checked: bool) -> None:
    """Print why the schedule's next run would be skipped, if it would."""
    if not is_checked:
        return
    facts = (
        inspect_agent(project, open_store(project), row.name, None)
        if row.kind == "agents"
        else inspect_pipeline(project, row.name, None)
    )
    if facts.obstacle:
        _print_warning(f"its runs are skipped for now: {facts.obstacle}", facts.hint)


def _print_warning(words: str, hint: str) -> None:
    echo(style_text(f"  ! {words}", fg="yellow"))
    if hint:
        echo(f"    → {hint}")


def _print_row(row: ScheduleRow, *, with_history: bool, is_fleet: bool) -> None:
    now, zone = clock.read_clock(), clock.find_zone()
    kind = "agent" if row.kind == "agents" else "pipeline"
    echo(style_text(row.name, bold=True), f"  ({kind}): {row.every}; {render_next(row, now, zone)}")
    for words, hint in list_schedule_warnings(row, now, zone, is_fleet=is_fleet):
        _print_warning(words, hint)
    if with_history:
        for outcome in row.history:
            echo(f"  {render_outcome(outcome, zone)}")
