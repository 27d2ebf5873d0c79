"""`rekindle run`: run an agent until its work is done."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import click

from rekindle import config
from rekindle.api.describe_reports import ReportLine, describe_report
from rekindle.cli.fleet.fleet_agents import run_on_fleet
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import (
    Number,
    budget_option,
    find_current_folder,
    json_option,
    print_note,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import (
    LineParts,
    echo,
    print_styled,
    style_text,
)
from rekindle.cli.reports.event_printer import EventPrinter
from rekindle.cli.trust_prompt import (
    ensure_trust,
    make_operator,
    print_changes,
    trust_option,
)
from rekindle.config import Project
from rekindle.errors import RekindleError, UnfinishedError
from rekindle.flows.supervision.supervisor import RunResult
from rekindle.flows.supervisor_ports import (
    SettingsReport,
    SupervisorReport,
    TroubleReport,
)
from rekindle.policy.exits import explain_reasons
from rekindle.policy.exits.stop_reasons import OUTCOMES, STOP_REASONS
from rekindle.policy.operator.build_row import (
    explain_safe_mode,
    find_next_command,
)
from rekindle.policy.progress import idle
from rekindle.policy.supervision import budget as budgets
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.wiring.access import (
    guarded_path,
    protected_paths,
    withheld_variables,
)
from rekindle.wiring.access.trust_checks import (
    accept_settings,
    require_trust,
)
from rekindle.wiring.open_store import open_store
from rekindle.wiring.starting.background_start import (
    FOR_UP,
    FOR_WATCHDOG,
    is_in_window,
    keep_last_words,
    start_briefs,
)
from rekindle.wiring.starting.start_notes import (
    REACH_HINT,
    UNHONOURED_HINT,
    explain_reach_of,
    find_notes,
    find_unhonoured,
)
from rekindle.wiring.supervisor_setup import run_supervisor


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--once",
    is_flag=True,
    help="Exit instead of waiting for a usage limit, an outage or a person.",
)
@click.option("--cycles", type=Number(0), help="Number of cycles in this run, or 0 for no limit.")
@budget_option
@click.option(FOR_WATCHDOG, is_flag=True, hidden=True)
@click.option(FOR_UP, is_flag=True, hidden=True)
@trust_option
@json_option
def run(  # noqa: PLR0917 - one parameter per option
    agent: str | None,
    once: bool,
    cycles: int | None,
    budget: str | None,
    for_watchdog: bool,
    for_up: bool,
    trust: bool,
    as_json: bool,
) -> int:
    """Run AGENT, cycle after cycle, and keep it alive until its work is done.

    Each cycle starts with the relay and ends by writing the next one. The run ends when the
    `until:` command succeeds, or after ten cycles. To change that number, use `cycles:` or
    --cycles. If the agent repeats itself, Rekindle first tells the agent, and then pauses it. If
    the agent is waiting for you, Rekindle pauses it until you run `rekindle answer`.

    If the process crashes or hangs, Rekindle stops everything that the process left running and
    resumes the session. If the session cannot be resumed, Rekindle starts a fresh one from the
    recorded state. At a usage limit, Rekindle waits until the limit resets. Progress means a
    commit, a changed result, a resolved loop, a decision or a different next action. After launches
    without progress, Rekindle waits longer each time and finally pauses the run. `--budget none`
    disables that pause. If only a person can fix a problem, the agent enters safe mode. Nothing
    runs until you answer its question with `rekindle answer`. Ctrl-C stops the agent, and a second
    Ctrl-C stops it immediately. The next `run` continues where it left off.

    With --json, Rekindle prints each log event as it happens, like `rekindle events --json`.

    With `fleet:` in the manifest, a fleet host runs the agent, and this command exits immediately.
    """
    project = config.load_project(find_current_folder())
    require_operator(project)
    name = resolve_agent(project, agent)
    is_background = for_watchdog or for_up
    if project.settings.fleet is not None:
        options = (("--once", once), (FOR_WATCHDOG, is_background), ("--json", as_json))
        for option, is_given in options:
            if is_given:
                refuse_fleet(project, option)
        ensure_trust(project, trust=trust)
        print_changes(name, accept_settings(project, name))
        run_on_fleet(project, project.settings.fleet, name, cycles, unbounded=budget == "none")
        return 0
    if is_background:
        require_trust(project.path)  # started by `up` or a watchdog, so there is no user to ask
    else:
        ensure_trust(project, trust=trust)
    if not (for_watchdog or as_json):
        with suppress(OSError):  # A closed pipe must not stop the agent.
            _print_exposed(project, name)
    store = open_store(project, say=print_note)
    if not is_background:
        make_operator(trust=trust).accept_log(store, name)
    lines = _follow_log(store, name) if as_json else None
    bounds = "" if is_background else _render_bounds(project, name, lifted=budget == "none")
    heard = _stop_if_unread(_tell_events(name, lines) if lines else _make_printer(name, bounds))
    try:
        with _record_failure(store, name, is_ours=is_background):
            result = run_supervisor(
                project,
                store,
                name,
                heard,
                once=once,
                for_watchdog=for_watchdog,
                for_up=for_up,
                cycles=cycles,
                unbounded=budget == "none",
            )
    finally:
        if lines:
            _print_new(lines)
    if project.settings.runtime.brief.on_session_end:
        start_briefs(project, store)
    return _print_end(store, name, result, silent=as_json)


@contextmanager
def _record_failure(store: FileStore, name: str, *, is_ours: bool) -> Iterator[None]:
    """Record why a supervisor in a tmux window failed, for `up` and the watchdog to print."""
    try:
        yield
    except RekindleError as error:
        if is_ours and is_in_window(store, name):
            words = "\n  → ".join(filter(None, (f"Error: {error}", error.hint)))
            keep_last_words(store, name, store.redaction.text(words))
        raise


def _print_exposed(project: Project, name: str) -> None:
    if words := protected_paths.explain_exposed(project, name):
        echo(f"Note: {words} (→ {protected_paths.EXPOSED_HINT})", err=True)
    if words := protected_paths.explain_temporary(project, name):
        echo(f"Note: {words} (→ {protected_paths.TEMPORARY_HINT})", err=True)
    if words := guarded_path.explain_path(project, name):
        echo(f"Note: {words} (→ {guarded_path.PATH_HINT})", err=True)
    for words in find_unhonoured(project, name):
        echo(f"Note: {words} (→ {UNHONOURED_HINT})", err=True)
    for note in find_notes(project, name):
        echo(f"Note: {note.words} (→ {note.hint})", err=True)
    words, is_useless = explain_reach_of(project, name)
    if is_useless:
        echo(f"Note: {words} (→ {REACH_HINT})", err=True)
    if missed := withheld_variables.find_withheld(project, name):
        echo(f"Note: {withheld_variables.explain_withheld(name, missed)}", err=True)


def _render_bounds(project: Project, name: str, *, lifted: bool) -> str:
    """Return the run's limits as one line."""
    cap = project.manifest.agents[name].budget
    ends = budgets.describe_budget(cap) if cap else ""
    bounds = idle.describe_bounds(project.settings.runtime.progress, lifted=lifted)
    return "; ".join(filter(None, (ends, bounds)))


def _print_end(store: FileStore, name: str, result: RunResult, *, silent: bool) -> int:
    """Print how the run ended, and return the exit code."""
    if result.outcome is None:
        if not silent:
            echo(f"{name}: nothing was started, because the agent was stopped or its run is over")
        return 0
    row, why = OUTCOMES[result.outcome], result.why
    command = _find_next_command(store, name, why)
    hint = explain_reasons.render_hint(
        why, name, is_safe=bool(result.safe), is_supervised=False, answer=command
    )
    if result.outcome == "stopped":
        where = f", in safe mode ({result.safe})" if result.safe else ""
        line = f"{name}: {row.words} in cycle {result.cycle}{where}; {hint}"
    else:
        is_between = STOP_REASONS[why].between
        last = "" if is_between or result.last is None else result.last.words
        words = _count_crashes(store, name, why) or explain_reasons.explain_reason(
            why, result.words or last
        )
        where = f"{'after' if is_between else 'in'} cycle {result.cycle}"
        line = f"{name}: {row.words} {where}: {words}"
    if row.severity in {"warning", "failure"}:
        raise UnfinishedError(line, hint=hint, outcome=result.outcome, exit_code=row.exit_code)
    if silent:
        return row.exit_code
    if row.state == "done":
        print_styled(f"✓ {line}", fg="green")
    else:
        echo(line)
    if row.severity:
        echo(f"  → {hint}")
    return row.exit_code


def _count_crashes(store: FileStore, name: str, why: str) -> str:
    """Return the number of crashes, or "" if crashes are not the reason for safe mode."""
    with suppress(RekindleError):
        projection = store.read(name).projection
        if why == "crash" and projection.run.is_safe:
            return explain_safe_mode(projection)
    return ""


def _find_next_command(store: FileStore, name: str, why: str) -> str:
    """Return the next command that `status` shows, or "" if the agent's log cannot be read."""
    with suppress(RekindleError):
        projection = store.read(name).projection
        if why == "stopped" and projection.run.is_safe:
            why = projection.run.safe.why
        return find_next_command(projection, clock.read_clock(), why)[0]
    return ""


def _stop_if_unread(tell: Callable[[SupervisorReport], None]) -> Callable[[SupervisorReport], None]:
    """Return a `tell` that ignores closed output, so the agent keeps running."""
    is_gone = False

    def tell_or_stop(report: SupervisorReport) -> None:
        nonlocal is_gone
        if is_gone:
            return
        try:
            tell(report)
        except OSError:
            is_gone = True

    return tell_or_stop


def _follow_log(store: FileStore, name: str) -> EventPrinter:
    """Return a printer for events that are added to the agent's log from now on."""
    end = store.read(name).end if store.exists(name) else 0
    return EventPrinter(store, name, end, as_json=True)


def _tell_events(name: str, lines: EventPrinter) -> Callable[[SupervisorReport], None]:
    """Return a function that prints new events on each report. Warnings go to standard error."""

    def print_events(report: SupervisorReport) -> None:
        if isinstance(report, TroubleReport | SettingsReport):
            _print_warning(name, report)
        _print_new(lines)

    return print_events


def _print_new(lines: EventPrinter) -> None:
    # A closed pipe or a broken disk must not stop the agent.
    with suppress(OSError, RekindleError):
        lines.print_new()


def _make_printer(name: str, bounds: str) -> Callable[[SupervisorReport], None]:
    """Return a function that prints the run's limits on one line, then each report."""
    has_keyboard = bool(sys.stdin) and sys.stdin.isatty()

    def print_report(report: SupervisorReport) -> None:
        if isinstance(report, TroubleReport | SettingsReport):
            _print_warning(name, report)
            return
        nonlocal bounds
        if bounds:
            echo(f"{name}: {bounds}", err=True)
            bounds = ""
        for line in describe_report(report, name, has_keyboard=has_keyboard):
            echo(*_render_line(line, name))

    return print_report


def _render_line(line: ReportLine, name: str) -> LineParts:
    """Return a line in the format that `run` prints."""
    before = {"agent": f"{name}: ", "margin": "", "inside": "  "}[line.place]
    return (style_text(before + line.text, **line.style),)


def _print_warning(name: str, report: TroubleReport | SettingsReport) -> None:
    if isinstance(report, SettingsReport):
        print_changes(name, report.changes)
    else:
        print_styled(f"  ! {report.words}", fg="yellow", err=True)
