"""`rekindle status`: show each agent's state and next step."""

import shlex
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from rekindle import config
from rekindle.cli.live_screen import read_terminal_size, repaint_until_interrupted
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    list_agents_here,
    open_fleet,
    print_note,
    render_age_of,
)
from rekindle.cli.output import LineParts, echo, print_json, style_text
from rekindle.cli.reports import schedule_lines, status_details, status_quota, status_runs
from rekindle.cli.reports.spending_line import render_spending
from rekindle.cli.reports.status_row import StatusRow
from rekindle.config import Project
from rekindle.documents.screens.agent_row import (
    STATES,
    AgentRow,
    WindowFigures,
    render_command,
)
from rekindle.documents.screens.status_table import (
    Group,
    TableLine,
    name_folders,
    render_projects,
    render_table,
)
from rekindle.errors import RekindleError, UsageError
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.handoff import window_rule
from rekindle.policy.operator.build_row import build_broken_row
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.stores.files import ownership
from rekindle.stores.folders.private_files import render_path
from rekindle.system import clock
from rekindle.thresholds.screens import QUESTION_WIDTH, STATUS_POLL_SECONDS
from rekindle.wiring.access.trust_checks import list_trusted
from rekindle.wiring.open_store import open_store

_CHANGED_SETTINGS = "rekindle.yaml has changed since your last command"
_COLOURS: dict[str, str | None] = {state: row.colour for state, row in STATES.items()}


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--watch", is_flag=True, help="Keep updating the screen until you press Ctrl-C.")
@click.option("--all", "every", is_flag=True, help="Show all projects that you trust on this host.")
@json_option
def status(agents: tuple[str, ...], watch: bool, every: bool, as_json: bool) -> None:
    """Show each agent's state and what to do next.

    With AGENTS, show only these agents. In an agent's own folder (`dir:`), show only that agent. If
    there are several agents, each has one line, and those that need you come first. A `!` marks an
    agent with a warning. To read the warning, run `rekindle status AGENT`. Unfinished pipeline runs
    are listed below the agents.
    """
    if watch and as_json:
        raise UsageError(
            "--watch and --json cannot be used together",
            hint="use `rekindle events -f --json` to print a stream",
        )
    if every:
        if agents:
            raise UsageError("--all shows every agent", hint="omit AGENTS or --all")
        _show_all(watch=watch, as_json=as_json)
        return
    project = config.load_project(find_current_folder())
    named = [project.require_agent(name) for name in dict.fromkeys(agents)]
    names = named or list_agents_here(project)
    read, seconds = _make_reader(project, names)
    runs = status_runs.OpenRuns(project if not named else None)
    accounts = status_quota.UsedAccounts(project, names)
    if as_json:
        agents_json = [row.as_json() for row in read()]
        rest = {"accounts": accounts.read_json(), "runs": runs.read_json()}
        print_json({"agents": agents_json, **rest})
    elif watch:
        repaint_until_interrupted(
            lambda: _render_screen(read()) + accounts.render() + runs.render(), seconds
        )
    else:
        for line in _render_screen(read()) + accounts.render() + runs.render():
            echo(*line)


def _show_all(*, watch: bool, as_json: bool) -> None:
    """Show the agents in all trusted projects."""
    folders = list_trusted()
    if as_json:
        projects = [{"project": render_path(at), **_make_json(at)} for at in folders]
        print_json({"projects": projects})
    elif watch:
        repaint_until_interrupted(lambda: _render_all(list_trusted()), POLL_SECONDS)
    else:
        for line in _render_all(folders):
            echo(*line)


def _make_json(folder: Path) -> dict[str, Any]:
    try:
        return {"agents": [agent_row.as_json() for agent_row in _read_all_of(folder)]}
    except RekindleError as error:
        return {"error": str(error), "hint": error.hint}


def _render_all(folders: list[Path]) -> list[LineParts]:
    """Return one table for all projects. Agents that need attention come first."""
    if not folders:
        return [("No project is trusted on this host. Next: `rekindle init`.",)]
    names = name_folders([render_path(folder) for folder in folders])
    groups = [_read_group(at, name) for at, name in zip(folders, names, strict=True)]
    return _colour_lines(render_projects(groups, clock.read_clock(), read_terminal_size().columns))


def _read_group(folder: Path, name: str) -> Group:
    """Return a project's agents, or one row with the error if the project is unreadable."""
    way = f"cd {shlex.quote(render_path(folder))} && "
    try:
        agents = [_lead_to(agent_row, way) for agent_row in _read_all_of(folder)]
    except RekindleError as error:
        hint = error.hint or f"{way}rekindle doctor"
        return Group(name, [build_broken_row("-", "", str(error), hint)], hint=hint)
    return Group(name, [_add_place(agent_row) for agent_row in agents], _find_marked(agents), way)


def _colour_lines(table: list[TableLine]) -> list[LineParts]:
    return [(style_text(line.text, fg=_COLOURS.get(line.state)),) for line in table]


def _find_marked(agents: list[StatusRow]) -> set[str]:
    """Return the names of agents with warnings."""
    return {
        agent_row.row.agent
        for agent_row in agents
        if "log" in agent_row.details and _list_warnings(agent_row)
    }


def _lead_to(agent_row: StatusRow, way: str) -> StatusRow:
    """Return an agent's row. Its next command starts with a `cd` to the project."""
    command = agent_row.row.command
    row = (
        replace(agent_row.row, command=f"{way}{command}") if _is_command(command) else agent_row.row
    )
    return StatusRow(row, agent_row.details)


def _is_command(text: str) -> bool:
    """Return whether the next step is a command rather than advice that mentions a command."""
    return text.startswith("rekindle ")


def _read_all_of(folder: Path) -> list[StatusRow]:
    project = config.load_project(folder)
    read, _seconds = _make_reader(project, project.declared_agents)
    return read()


def _make_reader(project: Project, names: list[str]) -> tuple[Callable[[], list[StatusRow]], float]:
    """Return a function that reads the agents, and the `--watch` interval in seconds."""
    if project.settings.fleet is not None:
        fleet = open_fleet(project, project.settings.fleet)
        # On a fleet, each poll is a query to the engine.
        return lambda: status_details.read_fleet_details(
            project, fleet, names, clock.read_clock()
        ), POLL_SECONDS
    files = status_details.FileRowReader(project, open_store(project, say=print_note))
    return lambda: files.read(names), STATUS_POLL_SECONDS


def _render_screen(agents: list[StatusRow]) -> list[LineParts]:
    """Return the lines of the status screen."""
    now = clock.read_clock()
    if not agents:
        return [("No agents yet. Next: `rekindle init AGENT`.",)]
    if len(agents) == 1:
        return render_agent(agents[0], now)
    shown = [_add_place(agent_row) for agent_row in agents]
    table = render_table(shown, now, read_terminal_size().columns, _find_marked(agents))
    return _colour_lines([*table, *_list_changed_settings(agents)])


def _add_place(agent_row: StatusRow) -> AgentRow:
    """Return the row with the error as its reason, or with the agent's host added to the reason."""
    row, listed = agent_row.row, agent_row.details.get("fleet")
    if "error" in agent_row.details:
        return replace(row, reason=agent_row.details["error"])
    if listed and listed["host"] != "-":
        return replace(row, reason=", ".join(filter(None, (row.reason, f"host {listed['host']}"))))
    return row


def render_agent(agent_row: StatusRow, now: datetime) -> list[LineParts]:
    """Return the lines that describe one agent in detail."""
    row, details = agent_row.row, agent_row.details
    reason = f": {row.reason}" if row.reason else ""
    lines: list[LineParts] = [
        (style_text(row.agent, bold=True), f"  ({details.get('route') or row.harness})"),
        (style_text(f"  state:  {row.label}{reason}", fg=_COLOURS.get(row.state)),),
    ]
    if row.command:
        lines.append((f"          → {row.next_step}",))
    if details.get("fleet"):
        lines.append((f"  fleet:  {_render_fleet(details)}",))
    lines += [(line,) for line in schedule_lines.render_schedule_lines(details)]
    if "error" in details:
        lines.append((style_text(f"  ! {details['error']}", fg="yellow"),))
        lines.append((f"  → {details['hint']}",))
    if "log" in details:
        lines += [(line,) for line in _list_known(agent_row, now)]
        lines += [(style_text(line, fg="yellow"),) for line in _list_attention(agent_row)]
    return lines


def _list_known(agent_row: StatusRow, now: datetime) -> Iterator[str]:
    row, details = agent_row.row, agent_row.details
    if row.state != "done":
        yield f"  next:   {row.next_action or 'its task: there is no relay yet'}"
    stale = f", {row.stale_loops} stale" if row.stale_loops else ""
    yield f"  loops:  {row.open_loops} open{stale}"
    yield f"  active: {render_age_of(row.last_active, now)}"
    if run := details["run"]:
        yield f"  cycle:  {_render_cycle(row, run, now)}"
        is_measured = row.window.tokens.source == "reported" or row.window.percent.value
        if is_measured or run["handoffs"]:
            yield f"  window: {_render_fullness(row.window, run)}"
        if details["budget"] or row.spend.tokens.value:
            yield f"  spent:  {render_spending(row.spend, run, details['budget'], now)}"
    if row.refused:
        calls = render_count(row.refused, "tool call")
        yield f"  refused: {calls} in this run; see `rekindle events {row.agent}`"
    for refused in details["refused_hosts"]:
        yield f"  refused: {refused['host']}, by the sandbox; to allow it: {refused['allow']}"
    if relay := details["relay"]:
        when = render_age_of(relay["committed"], now)
        yield f"  relay:  ~{render_count(relay['tokens'], 'token')}, by {relay['by']}, {when}"
    if workspace := details.get("workspace"):
        missing = "" if workspace["is_complete"] else " (not created yet)"
        yield f"  folder: {to_one_line(workspace['folder'])}{missing}"
        yield f"  branch: {workspace['branch']}"
    for process in details.get("kept", ()):
        age = render_age_of(process["since"], now)
        yield f"  kept:   {process['command']} (pid {process['pid']}, started {age})"


def _list_attention(agent_row: StatusRow) -> Iterator[str]:
    """Yield the questions that do not block the agent, then its warnings."""
    for question in agent_row.details["questions"]:
        if question["command"] == agent_row.row.command:
            continue  # Already shown below the state.
        step = render_command(question["command"], question["others"])
        yield f"  ? {to_one_line(question['text'], QUESTION_WIDTH)}: {step}"
    for line in _list_warnings(agent_row):
        yield f"  ! {line}"


def _render_fleet(details: dict[str, Any]) -> str:
    listed = details["fleet"]
    where = f"host {listed['host']} of pool" if listed["host"] != "-" else "pool"
    count = f"; generation {details['generation']}" if "generation" in details else ""
    return f"{listed['state']}, {where} {listed['pool']}{count}"


def _render_cycle(row: AgentRow, run: dict[str, Any], now: datetime) -> str:
    done = f"{row.cycle}, {row.cycles_done} done"
    if row.cycles_of:
        left = max(0, row.cycles_of - row.cycles_done)
        done = f"{row.cycle}, {row.cycles_done} of {row.cycles_of} done, {left} left"
    if row.state == "running":
        return f"{done}; its process started {render_age_of(run['began'], now)}"
    if not run["supervised"] and row.state in {"needs you", "waiting"}:
        return f"{done}; no supervisor is running"
    return done


def _render_fullness(window: WindowFigures, run: dict[str, Any]) -> str:
    parts = []
    if window.percent.value is not None:
        at = run["handed_off_at"]
        parts.append(
            f"{window.percent.value:.0f} % of {window.size:,} tokens full"
            f" ({window.percent.source}), "
            + (f"handed off at {at} %" if at else "never handed off")
        )
    elif window.tokens.value:
        parts.append(
            f"{render_count(window.tokens.value, 'token')} used; the size of the window is unknown"
        )
    if run["handoffs"]:
        parts.append(f"handoffs in this cycle: {run['handoffs']}")
    return "; ".join(parts)


def _has_changed_settings(agent_row: StatusRow) -> bool:
    # An agent that has never been active is still being set up.
    return bool(agent_row.details.get("settings_changed") and agent_row.row.last_active)


def _list_changed_settings(agents: list[StatusRow]) -> list[TableLine]:
    """Return a line that names stopped agents with changed settings, or "" if there are none."""
    names = [
        agent_row.row.agent
        for agent_row in agents
        if _has_changed_settings(agent_row)
        and not (agent_row.details["run"] or {}).get("supervised")
    ]
    if not names:
        return []
    command = f"rekindle {'run' if len(names) == 1 else 'up'} {' '.join(names)}"
    return [TableLine(f"! {', '.join(names)}: {_CHANGED_SETTINGS}; `{command}` accepts it")]


def _list_warnings(agent_row: StatusRow) -> list[str]:
    row = agent_row.details
    warnings = [*_list_file_warnings(agent_row), *row.get("schedule", {}).get("warnings", ())]
    if _has_changed_settings(agent_row):
        command = "restart" if row["run"] and row["run"]["supervised"] else "run"
        warnings.append(
            f"{_CHANGED_SETTINGS}: {'; '.join(row['settings_changed'])};"
            f" `rekindle {command} {agent_row.row.agent}` accepts it"
        )
    if row["run"] and row["run"]["hurried"] and agent_row.row.state != "done":
        warnings.append("its cycles take less than a minute: give it larger steps")
    if row["run"] and window_rule.is_too_many(row["run"]["handoffs"]):
        warnings.append("its cycles repeatedly outgrow the context window: split the work")
    if "fleet" not in row and (row["host"] or "").startswith(ownership.FLEET_PREFIX):
        warnings.append(
            "it is on a fleet, and this is its last state on this host: add `fleet:` to "
            "rekindle.yaml"
        )
    if unpushed := row["unpushed"]:
        words = to_one_line(unpushed["reason"])
        warnings.append(
            f"its work could not be pushed, and exists only on host {unpushed['host']}: {words}"
        )
    if agent_row.row.stale_loops:
        warnings.append("it has stale loops: finish them, or use `rekindle resolve ID REASON`")
    return warnings


def _list_file_warnings(agent_row: StatusRow) -> list[str]:
    warnings, row = [], agent_row.details
    relay = row["relay"]
    if relay and relay["over_cap"]:
        warnings.append("the relay is over its cap even after trimming: shorten its Next Action")
    if relay and relay["file"] == "edited":
        warnings.append("the relay file was edited: the next command adopts the edit")
    if relay and relay["file"] in {"missing", "behind"}:
        warnings.append(f"the relay file is {relay['file']}: run `rekindle doctor --fix`")
    if row["state_file"] == "edited":
        warnings.append(
            "state.json was edited: the next command that writes to the log adopts the edit"
        )
    if row["pending"] and not (row["run"] and row["run"]["supervised"]):
        warnings.append(f"records that already count, but are not in the log yet: {row['pending']}")
    if row["unreadable"]:
        warnings.append(f"unreadable records: {row['unreadable']}; see `rekindle doctor`")
    return warnings
