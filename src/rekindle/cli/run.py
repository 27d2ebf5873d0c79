"""`rekindle run`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import click

from rekindle import config
from rekindle.cli.event_lines import EventLines
from rekindle.cli.fleet_agents import run_on_fleet
from rekindle.cli.one_host import refuse_fleet
from rekindle.cli.options import (
    accept_log,
    agent_of,
    as_json,
    budget_option,
    here,
    print_note,
    require_operator,
)
from rekindle.cli.output import echo, secho
from rekindle.cli.report_lines import describe_report, render_line
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.errors import RekindleError, UnfinishedError
from rekindle.flows.keep_running import RunResult
from rekindle.flows.world import Report, SettingsChanged, Trouble
from rekindle.policy import budget as budgets
from rekindle.policy import endings, idle
from rekindle.policy.endings import ENDINGS, OUTCOMES
from rekindle.policy.row import explain_safe_mode, next_command
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.wiring import guarded_path, protected, withheld
from rekindle.wiring.run import keep_running
from rekindle.wiring.start_checks import (
    REACH_HINT,
    UNHONOURED_HINT,
    explain_reach_of,
    find_unhonoured,
)
from rekindle.wiring.store import open_store
from rekindle.wiring.trust import accept_settings, require_trust
from rekindle.wiring.watch import is_in_window, keep_last_words, start_briefs


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--once", is_flag=True, help="End where it would wait for what is outside, or need a person."
)
@click.option("--cycles", type=click.IntRange(0), help="How many cycles this run has; 0: no end.")
@budget_option
@click.option("--kept", is_flag=True, hidden=True, help="Continue as the operator said before.")
@click.option(
    "--said", is_flag=True, hidden=True, help="The operator's command is in the log already."
)
@trust_option
@as_json
def run(  # noqa: PLR0917 - one for each option
    agent: str | None,
    once: bool,
    cycles: int | None,
    budget: str | None,
    kept: bool,
    said: bool,
    trust: bool,
    as_json: bool,
) -> int:
    """Run AGENT, cycle after cycle, and keep it alive until its work is done.

    Each cycle begins with the relay and ends with the next one. The run is over when the command of
    `until:` passes, or after its cycles: ten, or as many as `cycles:` or --cycles say. A loop that
    repeats itself is told so, then paused; one that waits for you is paused: `rekindle answer`.

    A process that crashes or hangs is started again in the same session, after everything that it
    left running was ended; where the session cannot be brought back, a fresh one is told where the
    work stands. Usage limits are waited out. Launches without progress (a commit, a changed result,
    a resolved loop, a decision, another next action) are spaced out, and pause the run in the end;
    `--budget none` lifts that. What only a person can fix ends in safe mode: nothing
    runs until you answer the agent's question (`rekindle answer`). Ctrl-C stops the agent, twice at
    once; the next `run` continues where it was.

    With --json it prints the events of its log as they come, as `rekindle events --json` does.

    With `fleet:` in the manifest a host of the fleet runs it, and this command ends at once.
    """
    project = config.load(here())
    require_operator(project)
    name = agent_of(project, agent)
    if project.settings.fleet is not None:
        options = (("--once", once), ("--kept", kept or said), ("--json", as_json))
        for option, is_said in options:
            if is_said:
                refuse_fleet(project, option)
        ensure_trust(project, trust=trust)
        print_changes(name, accept_settings(project, name))
        run_on_fleet(project, project.settings.fleet, name, cycles, unbounded=budget == "none")
        return 0
    if kept or said:
        require_trust(project.path)  # a watchdog, or `up`, started us: only a person accepts
    else:
        ensure_trust(project, trust=trust)
    if not (kept or as_json):
        with suppress(OSError):  # a reader that is gone stops no agent
            _print_exposed(project, name)
    store = open_store(project, say=print_note)
    if not (kept or said):
        accept_log(store, name)
    lines = _follow_log(store, name) if as_json else None
    heard = _while_read(_tell_events(name, lines) if lines else _for_people(name))
    if not as_json and not kept and not said:
        with suppress(OSError):
            echo(f"{name}: {_bounds(project, name, lifted=budget == 'none')}", err=True)
    try:
        with _keep_why(store, name, is_ours=kept or said):
            result = keep_running(
                project,
                store,
                name,
                heard,
                once=once,
                kept=kept,
                said=said,
                cycles=cycles,
                unbounded=budget == "none",
            )
    finally:
        if lines:
            _print_new(lines)
    if project.settings.runtime.brief.on_session_end:
        start_briefs(project, store)
    return _ended(store, name, result, silent=as_json)


@contextmanager
def _keep_why(store: FileStore, name: str, *, is_ours: bool) -> Iterator[None]:
    """Keep why a supervisor in a tmux window of ours fails, for `up` and the watchdog."""
    try:
        yield
    except RekindleError as error:
        if is_ours and is_in_window(store, name):
            words = "\n  → ".join(filter(None, (f"Error: {error}", error.hint)))
            keep_last_words(store, name, store.redaction.text(words))
        raise


def _print_exposed(project: Project, name: str) -> None:
    if words := protected.exposed(project, name):
        echo(f"Note: {words} (→ {protected.EXPOSED_HINT})", err=True)
    if words := guarded_path.explain_path(project, name):
        echo(f"Note: {words} (→ {guarded_path.PATH_HINT})", err=True)
    for words in find_unhonoured(project, name):
        echo(f"Note: {words} (→ {UNHONOURED_HINT})", err=True)
    words, is_useless = explain_reach_of(project, name)
    if is_useless:
        echo(f"Note: {words} (→ {REACH_HINT})", err=True)
    if missed := withheld.find(project, name):
        echo(f"Note: {withheld.explain(name, missed)}", err=True)


def _bounds(project: Project, name: str, *, lifted: bool) -> str:
    """Return the bounds of the run, on one line."""
    cap = project.manifest.agents[name].budget
    ends = budgets.in_words(cap) if cap else ""
    bounds = idle.bounds_in_words(project.settings.runtime.progress, lifted=lifted)
    return "; ".join(filter(None, (ends, bounds)))


def _ended(store: FileStore, name: str, result: RunResult, *, silent: bool) -> int:
    """Print how the run stopped, and return the exit code of its outcome."""
    if result.outcome is None:
        if not silent:
            echo(f"{name}: nothing was started: it was stopped, or its run is over")
        return 0
    row, why = OUTCOMES[result.outcome], result.why
    answer = _answer(store, name, why)
    hint = endings.hint(why, name, is_safe=bool(result.safe), is_supervised=False, answer=answer)
    if result.outcome == "stopped":
        where = f", in safe mode ({result.safe})" if result.safe else ""
        line = f"{name}: {row.words} in cycle {result.cycle}{where}; {hint}"
    else:
        is_between = ENDINGS[why].between
        last = "" if is_between or result.last is None else result.last.words
        words = _crashes(store, name, why) or endings.explain(why, result.words or last)
        where = f"{'after' if is_between else 'in'} cycle {result.cycle}"
        line = f"{name}: {row.words} {where}: {words}"
    if row.severity in {"warning", "failure"}:
        raise UnfinishedError(line, hint=hint, outcome=result.outcome, exit_code=row.exit_code)
    if silent:
        return row.exit_code
    if row.state == "done":
        secho(f"✓ {line}", fg="green")
    else:
        echo(line)
    if row.severity:
        echo(f"  → {hint}")
    return row.exit_code


def _crashes(store: FileStore, name: str, why: str) -> str:
    """Return how often the agent crashed, if it is in safe mode for that; else nothing."""
    with suppress(RekindleError):
        known = store.read(name).projection
        if why == "crash" and known.run.is_safe:
            return explain_safe_mode(known)
    return ""


def _answer(store: FileStore, name: str, why: str) -> str:
    """Return the command that answers the agent's question, as `status` shows it; empty: none."""
    with suppress(RekindleError):
        known = store.read(name).projection
        if why != "stopped" and known.questions:
            return next_command(known, clock.now(), why)[0]
    return ""


def _while_read(tell: Callable[[Report], None]) -> Callable[[Report], None]:
    """Say it as long as somebody reads it: the agent works on when pager or terminal are gone."""
    is_gone = False

    def say(report: Report) -> None:
        nonlocal is_gone
        if is_gone:
            return
        try:
            tell(report)
        except OSError:
            is_gone = True

    return say


def _follow_log(store: FileStore, name: str) -> EventLines:
    """Return what prints the events of the agent's log from here on."""
    end = store.read(name).end if store.exists(name) else 0
    return EventLines(store, name, end, as_json=True)


def _tell_events(name: str, lines: EventLines) -> Callable[[Report], None]:
    """Print what the log has by now, whatever is reported; warnings go to standard error."""

    def tell(report: Report) -> None:
        if isinstance(report, Trouble | SettingsChanged):
            _warn(name, report)
        _print_new(lines)

    return tell


def _print_new(lines: EventLines) -> None:
    with suppress(
        OSError, RekindleError
    ):  # neither a reader nor a disk that is gone stops the agent
        lines.print_new()


def _for_people(name: str) -> Callable[[Report], None]:
    has_keyboard = bool(sys.stdin) and sys.stdin.isatty()

    def tell(report: Report) -> None:
        if isinstance(report, Trouble | SettingsChanged):
            _warn(name, report)
            return
        for line in describe_report(report, name, has_keyboard=has_keyboard):
            echo(*render_line(line, name))

    return tell


def _warn(name: str, report: Trouble | SettingsChanged) -> None:
    if isinstance(report, SettingsChanged):
        print_changes(name, report.changes)
    else:
        secho(f"  ! {report.words}", fg="yellow", err=True)
