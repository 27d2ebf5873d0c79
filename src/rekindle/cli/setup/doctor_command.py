"""`rekindle doctor`: check the setup and suggest fixes."""

import os
from collections.abc import Iterator
from contextlib import suppress

import click

from rekindle import config
from rekindle.api.operator import TRUST_VARIABLE
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_fleet,
    open_project,
    take_over_option,
)
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
    style_text,
)
from rekindle.cli.reports.schedule_lines import list_schedule_warnings
from rekindle.cli.setup.hook_selection import examine_all
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import CheckFailedError, ManifestError, RekindleError
from rekindle.formats.counts import render_count
from rekindle.plugins import find_program
from rekindle.policy.fleet import connection_check
from rekindle.policy.operator.build_row import (
    DOCTOR,
    RowInputs,
    build_row,
    explain_safe_mode,
)
from rekindle.policy.sandbox.bubblewrap import PROGRAM
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.stores.files import FileStore
from rekindle.stores.files.folder_check import FolderProblem
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.notifications import Notifier
from rekindle.system.processes.program_search import find_executable
from rekindle.system.sandbox import probe
from rekindle.wiring import open_snapshots
from rekindle.wiring.access import (
    guarded_path,
    protected_paths,
    trust_checks,
)
from rekindle.wiring.open_store import (
    HARNESSES,
    open_store,
)
from rekindle.wiring.schedules.list_schedules import ScheduleRow, read_schedules
from rekindle.wiring.starting.routed_agent import find_unusable_routes
from rekindle.wiring.starting.start_checks import find_obstacles
from rekindle.wiring.starting.start_notes import (
    REACH_HINT,
    UNHONOURED_HINT,
    explain_reach_of,
    find_notes,
    find_unhonoured,
)
from rekindle.wiring.stored_workspaces import find_workspace_problems

SANDBOX_USE = "runs agents with `sandbox: on`"
OPTIONAL_PROGRAMS = {
    "git": "keeps an audit trail of the relays",
    "tmux": "shows each agent in a window",
}


@click.command()
@click.option("--fix", is_flag=True, help="Fix what can be fixed, then check again.")
@take_over_option
@json_option
def doctor(fix: bool, take_over: bool, as_json: bool) -> None:
    """Check the setup, and print a fix for each problem.

    The exit code is 0 if nothing is broken, and 8 otherwise. A missing optional program does not
    count as a problem.
    """
    if fix or take_over:
        _fix_agents(take_over=take_over)
    problems_of = _examine_all()
    named = {
        find_program(harness): f"for the harness {harness.NAME}" for harness in HARNESSES.working()
    }
    uses = {name: use for name, use in (OPTIONAL_PROGRAMS | named).items() if name}
    programs = {name: find_executable(name) is not None for name in uses}
    obstacle = probe.find_obstacle()
    programs[PROGRAM] = obstacle is None
    broken = [
        problem for problems in problems_of.values() for problem in problems if not problem.is_note
    ]
    if as_json:
        print_json(
            {
                "ok": not broken,
                "agents": {
                    name: [
                        {"what": problem.what, "fix": problem.fix, "broken": not problem.is_note}
                        for problem in problems
                    ]
                    for name, problems in problems_of.items()
                },
                "programs": programs,
            }
        )
    else:
        _print_problems(
            problems_of,
            {name: "" if programs[name] else use for name, use in uses.items()},
        )
        if obstacle is None:
            echo(f"✓ {PROGRAM}")
        else:
            echo(f"· {obstacle.words} (optional: {SANDBOX_USE})")
            echo(f"    → {obstacle.hint}")
    if broken:
        raise CheckFailedError(
            f"{render_count(len(broken), 'problem')} found", hint="follow the hint after each →"
        )


def _examine_all() -> dict[str, list[FolderProblem]]:
    """Return each agent's problems. Manifest problems are listed under the manifest's file name."""
    try:
        project = config.load_project(find_current_folder())
    except RekindleError as error:
        # The file name is printed before each problem, so remove it here.
        words = str(error).removeprefix(f"{MANIFEST_FILE}: ")
        return {MANIFEST_FILE: [FolderProblem(words, error.hint)]}
    store = open_store(project)
    problems_of: dict[str, list[FolderProblem]] = {MANIFEST_FILE: []}
    if not trust_checks.is_trusted(project.path):
        words = "you have not accepted this folder on this host: hooks and watchdogs ignore it"
        fix = "read rekindle.yaml, then accept it with `rekindle run` or `rekindle run --trust`"
        is_accepted_here = os.environ.get(TRUST_VARIABLE) == "1"
        problems_of[MANIFEST_FILE].append(FolderProblem(words, fix, is_note=is_accepted_here))
    try:
        Notifier(project.manifest.notify).check()
    except RekindleError as error:
        problems_of[MANIFEST_FILE].append(FolderProblem(str(error), error.hint))
    if project.settings.fleet is not None:
        problems_of |= _examine_fleet(project, project.settings.fleet)
    for name in project.declared_agents:
        problems_of.setdefault(name, []).extend(_examine_agent(project, store, name))
    for row in read_schedules(project) if project.settings.fleet is None else ():
        problems_of.setdefault(row.name, []).extend(_examine_schedule(row))
    for report in examine_all():
        if report.is_broken:  # Agent names never start with a dot, so this key cannot clash.
            problems = [
                FolderProblem(f"hooks for {report.place.level}: {what}", report.fix)
                for what in report.problems
            ]
            problems_of.setdefault(report.place.files.folder, []).extend(problems)
    return problems_of


def _examine_agent(project: Project, store: FileStore, name: str) -> Iterator[FolderProblem]:
    # On a fleet, the files on this host are not used.
    is_here = project.settings.fleet is None
    if not durable_files.path_exists(project.path / MANIFEST_FILE):
        words = "a plugin records your own sessions here, but no agent can run yet"
        yield FolderProblem(words, "to set up an agent, use `rekindle init`", is_note=True)
        yield from store.inspect(name)
        return
    yield from _examine_exposure(project, name)
    if is_here:
        yield from store.inspect(name)
        yield from find_workspace_problems(project, name)
    yield from _examine_settings(project, store, name)
    yield from _examine_start(project, store, name)


def _examine_settings(project: Project, store: FileStore, name: str) -> Iterator[FolderProblem]:
    """Yield settings that keep the agent from running until the operator accepts them."""
    if trust_checks.is_unknown(project, name):
        fix = f"`rekindle run {name}` or `rekindle up {name}` shows and accepts them"
        yield FolderProblem(trust_checks.NEVER_ACCEPTED, fix, is_note=True)
    changes = trust_checks.find_changes(project, name)
    if not changes:
        return
    is_to_run = True
    with suppress(RekindleError):  # `store.inspect` reports damaged files
        is_to_run = store.exists(name) and store.read(name).projection.run.desired == "running"
    for change in changes:
        since = "without your command" if is_to_run else "since your last command"
        words = f"changed {since}: {change.render()}"
        fix = (
            f"check rekindle.yaml; `rekindle {'restart' if is_to_run else 'run'} {name}` accepts it"
        )
        yield FolderProblem(words, fix, is_note=not is_to_run)


def _examine_start(project: Project, store: FileStore, name: str) -> Iterator[FolderProblem]:
    """Yield the reasons why `run` would refuse the agent or start nothing."""
    on_this_host = project.settings.fleet is None
    yield from _examine_routes(project, name, on_this_host=on_this_host)
    for line in find_unhonoured(project, name):
        yield FolderProblem(line, UNHONOURED_HINT, is_note=True)
    if on_this_host:
        for note in find_notes(project, name):
            yield FolderProblem(note.words, note.hint, is_note=True)
    words, is_useless = explain_reach_of(project, name)
    if words:
        yield FolderProblem(words, REACH_HINT, is_note=not is_useless)
    if project.settings.fleet is not None or not store.exists(name):
        return
    with suppress(RekindleError):  # `store.inspect` reports damaged files
        projection = store.read(name).projection
        if projection.run.is_safe:
            around = RowInputs(clock.read_clock(), is_supervised=store.is_supervised(name))
            row = build_row(projection, around)
            stopped = ", and you have stopped it" if row.state == "stopped" else ""
            if row.command != DOCTOR:  # Otherwise, `store.inspect` reports the cause.
                yield FolderProblem(
                    f"is in safe mode: {explain_safe_mode(projection)}{stopped}", row.command
                )


def _examine_routes(project: Project, name: str, *, on_this_host: bool) -> Iterator[FolderProblem]:
    """Yield the errors that prevent a start, and notes about routes that are not used."""
    for error in find_obstacles(project, name, on_this_host=on_this_host):
        yield FolderProblem(str(error), error.hint)
    for route, error in find_unusable_routes(project, name, on_this_host=on_this_host):
        if not isinstance(error, ManifestError):  # an obstacle, too
            words = f"the route {route} is not used: {error}"
            yield FolderProblem(words, error.hint, is_note=True)


def _examine_schedule(row: ScheduleRow) -> Iterator[FolderProblem]:
    """Yield why a schedule does not start runs, and runs that were recently skipped or missed."""
    if row.error:
        yield FolderProblem(row.error, "`rekindle schedules` shows all schedules")
    for words, hint in list_schedule_warnings(row, clock.read_clock(), clock.find_zone()):
        fix = hint or f"`rekindle schedules {row.name}` shows the last runs"
        yield FolderProblem(words, fix, is_note=True)


def _examine_exposure(project: Project, name: str) -> list[FolderProblem]:
    notes = (
        (protected_paths.explain_exposed(project, name), protected_paths.EXPOSED_HINT),
        (protected_paths.explain_temporary(project, name), protected_paths.TEMPORARY_HINT),
        (guarded_path.explain_path(project, name), guarded_path.PATH_HINT),
        (open_snapshots.explain_mirror(project, name), open_snapshots.MIRROR_HINT),
    )
    return [FolderProblem(words, hint, is_note=True) for words, hint in notes if words]


def _examine_fleet(project: Project, fleet: FleetSettings) -> dict[str, list[FolderProblem]]:
    """Return the problems with the engine, with briefs, and with each agent on the fleet."""
    try:
        store = open_fleet(project, fleet)
        from rekindle.fleet.commands import fleet_checks  # noqa: PLC0415 - needs the fleet extra
    except RekindleError as error:
        return {"fleet": [FolderProblem(str(error), error.hint)]}

    warnings = [
        FolderProblem(warning.what, warning.fix, is_note=True)
        for warning in connection_check.find_fleet_warnings(fleet)
    ]
    return {
        f"fleet {fleet.address}": [*fleet_checks.check_engine(store, fleet), *warnings],
        "briefs": fleet_checks.check_briefs(project),
        **{
            name: fleet_checks.check_definition(project, fleet, name)
            + fleet_checks.check_workspace(project, name)
            for name in project.declared_agents
        },
    }


def _fix_agents(*, take_over: bool) -> None:
    project, store = open_project("--fix")
    for name in project.declared_agents:
        try:
            _fix_agent(store, name, take_over=take_over)
        except RekindleError as error:
            print_styled(f"{name}: could not be fixed: {error}", fg="red", err=True)
            if error.hint:
                echo(f"  → {error.hint}", err=True)


def _fix_agent(store: FileStore, name: str, *, take_over: bool) -> None:
    with store.writer(name, take_over=take_over) as writer:
        writer.fold()
    store.catch_up_audit(name)


def _print_problems(problems_of: dict[str, list[FolderProblem]], missing: dict[str, str]) -> None:
    """Print the problems, then the optional programs. Missing programs show their purpose."""
    noted: dict[FolderProblem, list[str]] = {}
    for name, problems in problems_of.items():
        for problem in problems:
            if problem.is_note:
                noted.setdefault(problem, []).append(name)
    for name, problems in problems_of.items():
        if not problems:
            echo(f"✓ {name}")
        for problem in problems:
            if problem.is_note and problem not in noted:
                continue  # Already printed with the first agent that has this problem.
            about = ", ".join(noted.pop(problem)) if problem.is_note else name
            mark = style_text("·", dim=True) if problem.is_note else style_text("✗", fg="red")
            echo(mark, f" {about}: {problem.what}")
            echo(f"    → {problem.fix}")
    for name, use in missing.items():
        echo(f"· {name} is not installed (optional: {use})" if use else f"✓ {name}")
