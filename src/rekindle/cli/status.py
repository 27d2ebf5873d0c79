"""`rekindle status`."""

import shlex
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from rekindle import config
from rekindle.cli import rows
from rekindle.cli.options import agents_here, ago, as_json, here, open_fleet, print_note
from rekindle.cli.output import Parts, echo, print_json, styled
from rekindle.cli.screen import repaint, terminal_size
from rekindle.config import Project
from rekindle.documents.identity import one_line
from rekindle.documents.row import Row, Spend, Window, with_others
from rekindle.documents.row_table import needs_person, render_table, summarize_rows
from rekindle.errors import RekindleError, UsageError
from rekindle.policy import handoff
from rekindle.policy.settings import POLL_SECONDS, SECONDS_AN_HOUR
from rekindle.stores.files import ownership
from rekindle.stores.private import render_path
from rekindle.system import clock
from rekindle.thresholds.screens import QUESTION_WIDTH, STATUS_POLL_SECONDS
from rekindle.wiring.store import open_store
from rekindle.wiring.trust import list_trusted

SCHEMA = 1
_COLOURS = {"needs you": "red", "broken": "red", "waiting": "yellow"}


@click.command()
@click.argument("agent", required=False)
@click.option("--watch", is_flag=True, help="Repaint the screen as things change; Ctrl-C ends.")
@click.option("--all", "every", is_flag=True, help="All projects that you trust on this host.")
@as_json
def status(agent: str | None, watch: bool, every: bool, as_json: bool) -> None:
    """Show how the agents are, and what comes next.

    With AGENT, or in the folder of one agent (`dir:`): only that one.
    Several agents have one line each, those that need you first; an agent with a `!` has a warning
    that `rekindle status AGENT` shows.
    """
    if watch and as_json:
        raise UsageError(
            "--watch and --json exclude each other", hint="`rekindle events -f --json`"
        )
    if every:
        if agent:
            raise UsageError("--all shows every agent", hint="leave AGENT or --all out")
        _show_all(watch=watch, as_json=as_json)
        return
    project = config.load(here())
    names = [project.require_agent(agent)] if agent else agents_here(project)
    read, seconds = _reader(project, names)
    if as_json:
        print_json({"v": SCHEMA, "agents": [one.as_json() for one in read()]})
    elif watch:
        repaint(lambda: _render(read(), clock.now()), seconds)
    else:
        for line in _render(read(), clock.now()):
            echo(*line)


def _show_all(*, watch: bool, as_json: bool) -> None:
    """Show the agents of all trusted projects."""
    folders = list_trusted()
    if as_json:
        found = [{"project": render_path(at), **_as_json_of(at)} for at in folders]
        print_json({"v": SCHEMA, "projects": found})
    elif watch:
        repaint(lambda: _render_all(folders), POLL_SECONDS)
    else:
        for line in _render_all(folders):
            echo(*line)


def _as_json_of(folder: Path) -> dict[str, Any]:
    try:
        return {"agents": [one.as_json() for one in _read_all_of(folder)]}
    except RekindleError as error:
        return {"error": str(error), "hint": error.hint}


def _render_all(folders: list[Path]) -> list[Parts]:
    """Return a total, and the lines of each project, those that need a person first."""
    if not folders:
        return [("No project is trusted on this host. Next: `rekindle init`.",)]
    found = [_render_project(folder) for folder in folders]
    agents = [one.row for project in found for one in project.agents]
    projects = f"{len(folders)} project{'' if len(folders) == 1 else 's'}"
    lines: list[Parts] = [(f"{projects}, {summarize_rows(agents)}",)]
    for project in sorted(found, key=lambda one: not one.needs_person):
        lines += [("",), *project.lines]
    return lines


class _RenderedProject(NamedTuple):
    agents: list[rows.Shown]
    lines: list[Parts]
    needs_person: bool


def _render_project(folder: Path) -> _RenderedProject:
    """Return the lines of a project; a project that cannot be read needs a person."""
    path = render_path(folder)
    title: Parts = (styled(one_line(path), bold=True),)
    way = f"cd {shlex.quote(path)} && "
    try:
        agents = [_lead_to(one, way) for one in _read_all_of(folder)]
    except RekindleError as error:
        lines: list[Parts] = [(styled(f"  ! {error}", fg="yellow"),), (f"  → {error.hint}",)]
        return _RenderedProject([], [title, *lines], needs_person=True)
    asks = any(needs_person(one.row) for one in agents)
    return _RenderedProject(agents, [title, *_render(agents, clock.now(), way)], asks)


def _lead_to(one: rows.Shown, way: str) -> rows.Shown:
    """Return an agent whose commands begin with the way to its project."""
    command = one.row.command
    row = replace(one.row, command=f"{way}{command}") if _is_command(command) else one.row
    asked = [
        question | {"command": f"{way}{question['command']}"}
        for question in one.details.get("questions", ())
    ]
    return rows.Shown(row, one.details | {"questions": asked} if asked else one.details)


def _is_command(text: str) -> bool:
    """Return whether a row has a command, and not advice with a command in it."""
    return text.startswith("rekindle ")


def _read_all_of(folder: Path) -> list[rows.Shown]:
    project = config.load(folder)
    read, _seconds = _reader(project, list(project.manifest.agents))
    return read()


def _reader(project: Project, names: list[str]) -> tuple[Callable[[], list[rows.Shown]], float]:
    """Return what reads the agents, and the seconds between two looks of `--watch`."""
    if project.settings.fleet is not None:
        fleet = open_fleet(project, project.settings.fleet)
        # Each look is a question to the engine.
        return lambda: rows.of_fleet(project, fleet, names, clock.now()), POLL_SECONDS
    files = rows.FileRows(project, open_store(project, say=print_note))
    return lambda: files.read(names), STATUS_POLL_SECONDS


def _render(agents: list[rows.Shown], now: datetime, way: str = "") -> list[Parts]:
    """Return the lines of the screen, each with its parts; commands begin with `way`."""
    if not agents:
        return [("No agents yet. Next: `rekindle init --agent NAME`.",)]
    if len(agents) == 1:
        return render_agent(agents[0], now)
    shown = [_with_place(one) for one in agents]
    marked = {one.row.agent for one in agents if "log" in one.details and _warnings(one)}
    table = render_table(shown, now, terminal_size().columns, marked, way)
    return [(styled(line.text, fg=_COLOURS.get(line.state)),) for line in table]


def _with_place(one: rows.Shown) -> Row:
    """Return the row with the error of its details, or the host that the agent runs on."""
    row, listed = one.row, one.details.get("fleet")
    if "error" in one.details:
        return replace(row, reason=one.details["error"])
    if listed and listed["host"] != "-":
        return replace(row, reason=", ".join(filter(None, (row.reason, f"host {listed['host']}"))))
    return row


def render_agent(one: rows.Shown, now: datetime) -> list[Parts]:
    """Return the details of one agent, line by line."""
    row, details = one.row, one.details
    reason = f": {row.reason}" if row.reason else ""
    lines: list[Parts] = [
        (styled(row.agent, bold=True), f"  ({row.harness})"),
        (styled(f"  state:  {row.label}{reason}", fg=_COLOURS.get(row.state)),),
    ]
    if row.command:
        lines.append((f"          → {row.next_step}",))
    if details.get("fleet"):
        lines.append((f"  fleet:  {_on_fleet(details)}",))
    if "error" in details:
        lines.append((styled(f"  ! {details['error']}", fg="yellow"),))
        lines.append((f"  → {details['hint']}",))
    if "log" in details:
        lines += [(line,) for line in _known(one, now)]
        lines += [(styled(line, fg="yellow"),) for line in _attention(one)]
    return lines


def _known(one: rows.Shown, now: datetime) -> Iterator[str]:
    row, details = one.row, one.details
    none = "no relay yet" if "fleet" in details else "no relay yet: rekindle relay set FILE"
    if row.state != "done":
        yield f"  next:   {row.next_action or none}"
    stale = f", {row.stale_loops} stale" if row.stale_loops else ""
    yield f"  loops:  {row.open_loops} open{stale}"
    yield f"  active: {ago(row.last_active, now)}"
    if run := details["run"]:
        yield f"  cycle:  {_cycle(row, run, now)}"
        is_measured = row.window.tokens.source == "reported" or row.window.percent.value
        if is_measured or run["handoffs"]:
            yield f"  window: {_fullness(row.window, run)}"
        if details["budget"] or row.spend.tokens.value:
            yield f"  spent:  {_spent(row.spend, run, details['budget'], now)}"
    if row.refused:
        calls = f"{row.refused} tool call{'' if row.refused == 1 else 's'}"
        yield f"  refused: {calls} of this run: `rekindle events {row.agent}`"
    if relay := details["relay"]:
        when = ago(relay["committed"], now)
        yield f"  relay:  ~{relay['tokens']:,} tokens, by {relay['by']}, {when}"
    for kept in details.get("kept", ()):
        yield f"  kept:   {kept['command']} (pid {kept['pid']}, since {ago(kept['since'], now)})"


def _attention(one: rows.Shown) -> Iterator[str]:
    """Yield the questions that hold nothing up, and the warnings."""
    for asked in one.details["questions"]:
        if asked["command"] == one.row.command:
            continue  # the line below the state has it
        step = with_others(asked["command"], asked["others"])
        yield f"  ? {one_line(asked['text'], QUESTION_WIDTH)}: {step}"
    for line in _warnings(one):
        yield f"  ! {line}"


def _on_fleet(details: dict[str, Any]) -> str:
    listed = details["fleet"]
    where = f"host {listed['host']} of pool" if listed["host"] != "-" else "pool"
    count = f"; generation {details['generation']}" if "generation" in details else ""
    return f"{listed['state']}, {where} {listed['pool']}{count}"


def _cycle(row: Row, run: dict[str, Any], now: datetime) -> str:
    done = f"{row.cycle}, {row.cycles_done} done"
    if row.cycles_of:
        left = max(0, row.cycles_of - row.cycles_done)
        done = f"{row.cycle}, {row.cycles_done} of {row.cycles_of} done, {left} left"
    if row.state == "running":
        return f"{done}; its process began {ago(run['began'], now)}"
    if not run["supervised"] and row.state in {"needs you", "waiting"}:
        return f"{done}; no supervisor runs"
    return done


def _fullness(window: Window, run: dict[str, Any]) -> str:
    parts = []
    if window.percent.value is not None:
        at = run["handed_off_at"]
        parts.append(
            f"{window.percent.value:.0f} % of {window.size:,} tokens full"
            f" ({window.percent.source}), "
            + (f"handed off at {at} %" if at else "never handed off")
        )
    elif window.tokens.value:
        parts.append(f"{window.tokens.value:,} tokens used; its size is unknown")
    if run["handoffs"]:
        parts.append(f"handoffs in this cycle: {run['handoffs']}")
    return "; ".join(parts)


def _spent(spend: Spend, run: dict[str, Any], budget: dict[str, Any] | None, now: datetime) -> str:
    """Return what the run has spent, beside what it may spend."""
    cap = budget or {}
    hours = (now - run["run_began"]).total_seconds() / SECONDS_AN_HOUR if run["run_began"] else 0
    of_usd = f" of ${spend.usd_cap:g}" if spend.usd_cap else ""
    of_tokens = f" of {spend.tokens_cap:,}" if spend.tokens_cap else ""
    has_money = bool(spend.usd.value or of_usd)  # a program without prices has none to show
    about = "~" if spend.usd.source == "estimated" else ""
    parts = []
    if spend.usd.value is not None:
        parts.append(f"{about}${spend.usd.value:.2f}{of_usd}")
    elif has_money:
        parts.append(f"unknown cost{of_usd}")
    parts.append(f"{int(spend.tokens.value or 0):,}{of_tokens} tokens")
    if cap.get("hours"):
        parts.append(f"{hours:.1f} of {cap['hours']:g} hours")
    if spend.unpriced and has_money:
        parts.append(f"and {spend.unpriced} launches whose cost is not known")
    return ", ".join(parts)


def _warnings(one: rows.Shown) -> list[str]:
    row = one.details
    found = _about_files(one)
    found += [
        f"rekindle.yaml changed since your last command: {change};"
        f" `rekindle {'restart' if row['run'] and row['run']['supervised'] else 'run'}"
        f" {one.row.agent}` accepts it"
        for change in row.get("settings_changed", ())
        if row["run"]  # else the operator is still setting it up
    ]
    if row["run"] and row["run"]["hurried"]:
        found.append("its cycles take less than a minute: make the steps of its task larger")
    if row["run"] and handoff.is_much(row["run"]["handoffs"]):
        found.append("split this work: its cycle has outgrown one window again and again")
    if "fleet" not in row and (row["host"] or "").startswith(ownership.FLEET):
        found.append("it lives on a fleet: this is how it left; say `fleet:` in rekindle.yaml")
    if unpushed := row["unpushed"]:
        words = one_line(unpushed["reason"])
        found.append(
            f"its work could not be pushed, and is on host {unpushed['host']} alone: {words}"
        )
    if one.row.stale_loops:
        found.append("stale loops: finish or `rekindle resolve` them")
    return found


def _about_files(one: rows.Shown) -> list[str]:
    found, row = [], one.details
    relay = row["relay"]
    if relay and relay["over_cap"]:
        found.append("the relay is over its cap even when trimmed: shorten its Next Action")
    if relay and relay["file"] == "edited":
        found.append("the relay's file was edited: the next command takes it over")
    if relay and relay["file"] in {"missing", "behind"}:
        found.append(f"the relay's file is {relay['file']}: rekindle doctor --fix")
    if row["state_file"] == "edited":
        found.append("state.json was edited: the next command that writes takes it over")
    if row["pending"] and not (row["run"] and row["run"]["supervised"]):
        found.append(f"records that wait to be folded, and count already: {row['pending']}")
    if row["unreadable"]:
        found.append(f"unreadable records: {row['unreadable']}; see rekindle doctor")
    return found
