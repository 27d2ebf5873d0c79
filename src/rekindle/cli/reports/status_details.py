"""Read the `rekindle status` rows and their details from files or from a fleet."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rekindle.api.fleet_rows import FleetReading, read_fleet_rows
from rekindle.cli.options import adopt_edits
from rekindle.cli.reports import schedule_lines
from rekindle.cli.reports.status_row import StatusRow
from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.flows.operator.read_rows import RowReading
from rekindle.policy.handoff import window_rule
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.routes.explain_route import explain_route
from rekindle.policy.sandbox.allowed_hosts import render_permission
from rekindle.policy.stall import stall_response
from rekindle.policy.supervision.next_move import AgentLimits, choose_agent_route
from rekindle.stores.files import (
    FileStore,
    folder_check,
)
from rekindle.stores.folders.private_files import render_path
from rekindle.stores.log.view import AgentView
from rekindle.system import clock
from rekindle.wiring.access import trust_checks
from rekindle.wiring.agent_routes import find_routes
from rekindle.wiring.row_setup import is_alive, make_row_reader

if TYPE_CHECKING:
    from rekindle.fleet.commands.fleet_store import FleetStore


def read_fleet_details(
    project: Project, store: "FleetStore", names: Sequence[str], now: datetime
) -> list[StatusRow]:
    """Return the agents on a fleet, with the details of those whose state was queried."""
    readings = read_fleet_rows(project, store, names, now)
    return [StatusRow(reading.row, _describe_fleet(project, reading, now)) for reading in readings]


def _describe_fleet(project: Project, reading: FleetReading, now: datetime) -> dict[str, Any]:
    if reading.listed is None:
        return {"fleet": None, "lives_here": reading.lives_here}
    fleet = {"fleet": msgspec.to_builtins(reading.listed)}
    if reading.error is not None:
        # The details could not be queried, but the engine's list contains some facts.
        return fleet | {"error": str(reading.error), "hint": reading.error.hint}
    if (state := reading.registered) is None:
        return fleet
    facts = _collect_known(
        project,
        reading.row.agent,
        state.projection,
        state.projection,
        now,
        supervised=reading.is_supervised,
        file="clean",
    )
    more = {"state_file": "clean", "log": "sealed", "pending": 0, "unreadable": 0}
    owner = {"generation": state.generation, "host": state.host or None}
    return fleet | facts | more | owner


class FileRowReader:
    """Reads a project's agents. An agent is read again only if its files have changed."""

    def __init__(self, project: Project, store: FileStore) -> None:
        self._project, self._store = project, store
        self._rows = make_row_reader(project, store)
        self._shown: dict[str, tuple[RowReading, StatusRow]] = {}

    def read(self, names: Sequence[str]) -> list[StatusRow]:
        rows = [self._read_row(name) for name in names]
        return schedule_lines.add_schedules(self._project, rows)

    def _read_row(self, name: str) -> StatusRow:
        reading = self._rows.read(name)
        before, shown = self._shown.get(name, (None, None))
        if shown is None or reading is not before:
            shown = _make_file_row(self._project, self._store, reading)
            if _is_edited(shown) and not reading.is_supervised:
                adopt_edits(self._store, name)
                reading = self._rows.read(name)
                shown = _make_file_row(self._project, self._store, reading)
            self._shown[name] = reading, shown
        return shown


def _is_edited(shown: StatusRow) -> bool:
    files = (shown.details.get(key) for key in ("relay_file", "state_file"))
    return "edited" in files


def _make_file_row(project: Project, store: FileStore, reading: RowReading) -> StatusRow:
    if reading.view is None:
        return StatusRow(reading.row)
    try:
        return StatusRow(reading.row, _collect_facts(project, store, reading, reading.view))
    except RekindleError as error:
        # Only the details could not be read. The row is complete.
        return StatusRow(reading.row, {"error": str(error), "hint": error.hint})


def _collect_facts(
    project: Project, store: FileStore, reading: RowReading, view: AgentView
) -> dict[str, Any]:
    name, owner, supervised = reading.row.agent, reading.owner, reading.is_supervised
    standing = view.committed.documents.get("relay")
    file = folder_check.compare_document(store.folder(name), "relay", standing)
    projection, committed = view.projection, view.committed
    return {
        **_collect_known(
            project,
            name,
            projection,
            committed,
            clock.read_clock(),
            supervised=supervised,
            file=file,
        ),
        "relay_file": file,
        "state_file": "edited" if store.has_edited_state(name) else "clean",
        "log": view.condition,
        "pending": len(view.pending),
        "unreadable": len(view.bad) + view.unreadable,
        "settings_changed": [
            change.render() for change in trust_checks.find_changes(project, name)
        ],
        "generation": projection.gen,
        "host": owner.host if owner else None,
        "kept": _list_background(store, name),
        "workspace": _describe_workspace(project, name),
    }


def _describe_workspace(project: Project, name: str) -> dict[str, Any] | None:
    """Return the path of the agent's own clone or work tree, or None if it has none."""
    if project.manifest.agents[name].workspace in {None, "here"}:
        return None
    from rekindle.wiring.agent_workspaces import find_workspace  # noqa: PLC0415 - few agents need git

    workspace = find_workspace(project, name)
    if workspace is None:
        return None
    return {
        "kind": workspace.checkout.kind,
        "folder": render_path(workspace.folder),
        "branch": workspace.checkout.branch,
        "is_complete": workspace.exists,
    }


def _list_background(store: FileStore, name: str) -> list[dict[str, Any]]:
    """Return the background processes that were kept on purpose and are still running."""
    processes = store.background(name).kept
    if not processes:
        return []
    return [
        {"pid": background.pid, "command": background.command, "since": background.since}
        for background in processes
        if is_alive(background.process)
    ]


def _collect_known(
    project: Project,
    name: str,
    projection: Projection,
    committed: Projection,
    now: datetime,
    *,
    supervised: bool,
    file: str,
) -> dict[str, Any]:
    """Return the details that are available both on this host and on a fleet."""
    standing = committed.documents.get("relay")
    entry = project.manifest.agents[name]
    run = _describe_run(projection, supervised=supervised) | {
        "handoffs": window_rule.count_handoffs(
            sessions.select_cycle_launches(projection.attempts, projection.cycle).values()
        ),
        "handed_off_at": window_rule.find_threshold(entry.handover, project.settings.runtime.relay),
    }
    return {
        "budget": msgspec.to_builtins(entry.budget) if entry.budget else None,
        "run": run if projection.attempts else None,
        "relay": {
            "committed": standing.ts,
            "by": standing.by,
            "tokens": standing.tokens,
            "over_cap": standing.over_cap,
            "file": file,
        }
        if standing
        else None,
        "questions": _list_questions(projection, now),
        "refused_hosts": [
            {"host": host, "allow": render_permission(host)}
            for host in projection.run.list_refused_hosts()
        ],
        "unpushed": _find_unpushed(projection),
        "route": _explain_route(project, name, projection, now),
        "may_miss_stop": projection.may_miss_stop,
    }


def _list_questions(projection: Projection, now: datetime) -> list[dict[str, Any]]:
    """Return the questions that a person can answer now."""
    if not projection.questions:
        return []
    from rekindle.policy.operator import answers, questions  # noqa: PLC0415 - few agents have any

    return [
        {
            "id": question.question,
            "text": question.text,
            "command": answers.render_answer_command(question),
            "others": answers.list_other_answers(question),
        }
        for question in questions.list_open_questions(projection, now)
    ]


def _explain_route(
    project: Project, name: str, projection: Projection, now: datetime
) -> str | None:
    """Return the agent's route and why it is used, or None if the agent has only one."""
    routes = find_routes(project, name)
    limits = AgentLimits(runtime=project.settings.runtime, routes=routes)
    choice = choose_agent_route(projection, limits, now)
    if choice is None:
        return None
    newest = sessions.find_newest_launch(projection.attempts)
    return explain_route(newest.route if newest else None, routes, choice, now.astimezone())


def _find_unpushed(projection: Projection) -> dict[str, Any] | None:
    """Return when and why a push failed, or None if all work was pushed."""
    unpushed = projection.unpushed
    return (
        {"since": unpushed.ts, "host": projection.moved.host, "reason": unpushed.words}
        if unpushed
        else None
    )


def _describe_run(projection: Projection, *, supervised: bool) -> dict[str, Any]:
    """Return whether a supervisor is running, and how the last launch ended."""
    launch, run = (
        sessions.find_newest_launch(projection.attempts) or LaunchRecord(0, "", resumes=False),
        projection.run,
    )
    waits = run.waits(launch.seq)
    return {
        "supervised": supervised,
        "desired": run.desired or None,
        "ended": {"kind": run.ended.why, "reason": run.ended.words} if run.is_over else None,
        "safe_mode": {"kind": run.safe.why, "reason": run.safe.words} if run.is_safe else None,
        "waits": {"kind": waits.why, "until": waits.until} if waits else None,
        "run_began": run.began_at,
        "cycle_done": not projection.is_cycle_open,
        "last_cycle": _describe_last_cycle(projection),
        "hurried": stall_response.are_cycles_hurried(projection.ended),
        "session": launch.session,
        "began": launch.began,
        "exit": launch.exit or None,
    }


def _describe_last_cycle(projection: Projection) -> dict[str, Any] | None:
    last = projection.last_ended_cycle
    if last is None:
        return None
    return {"cycle": last.cycle, "how": last.how, "verdict": last.verdict, "reason": last.words}
