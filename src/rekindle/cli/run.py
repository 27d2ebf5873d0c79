"""`rekindle run`."""

import sys
from collections.abc import Callable
from contextlib import suppress

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
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Called, Compacted, Retried, Said, Warned
from rekindle.errors import AgentError, RekindleError
from rekindle.flows.keep_running import Outcome
from rekindle.flows.world import (
    CallRefused,
    Fell,
    Handed,
    HandedOff,
    InSafeMode,
    Launching,
    Noticed,
    Report,
    SettingsChanged,
    Trouble,
    Waits,
)
from rekindle.policy import budget as budgets
from rekindle.policy import idle
from rekindle.stores.files import FileStore
from rekindle.thresholds.screens import REPORT_CHARACTERS
from rekindle.wiring import guarded_path, protected
from rekindle.wiring.run import keep_running
from rekindle.wiring.store import open_store
from rekindle.wiring.trust import require_trust
from rekindle.wiring.watch import start_briefs

INTERRUPTED = 130
_HINTS = {
    "limit": "when the limit has passed, `rekindle run {name}` goes on where it was",
    "overload": "try again later: `rekindle run {name}` goes on where it was",
    "network": "when the network is back, `rekindle run {name}` goes on where it was",
    "auth": "log the agent's CLI in, or mend its key, then `rekindle run {name}` goes on",
    "billing": "pay, or raise the spend limit, then `rekindle run {name}` goes on",
    "budget": "raise `budget:` and `rekindle run {name}` goes on;"
    " `rekindle restart {name}` begins a new one",
    "context-full": "the work does not fit one window: make the task or the relay smaller",
    "crash": "`rekindle events -a {name}` shows what happened; `rekindle run {name}` tries again",
    "idle": "`rekindle run {name}` waits until then; to start it now, `rekindle restart {name}`,"
    " then `rekindle run {name}`",
    "no-progress": "look at what it did (`rekindle events -a {name}`), then"
    " `rekindle restart {name}`",
    "cycles": "look at what it did (`rekindle relay show -a {name}`); `rekindle run {name}` has"
    " as many cycles again",
    "waiting": "`rekindle answer {name} TEXT` answers, and goes on",
    "settings": "check rekindle.yaml; `rekindle restart {name}` accepts it",
    "stalled": "change its task or its relay, then `rekindle restart {name}`",
}


_BETWEEN = {"cycles", "waiting", "stalled"}
"""Why a run ends between two cycles."""
_MENDS = {
    "waiting": "`rekindle answer {name} TEXT` answers, and goes on",
    "settings": "check rekindle.yaml, and undo the change or accept it",
    "tampered": "check what the agent did (`rekindle doctor` says what is wrong with its log)",
    "stalled": "look at its relay (`rekindle relay show -a {name}`), change it or the task",
    "auth": "log the agent's CLI in, or mend its key",
    "billing": "pay, or raise the spend limit",
    "budget": "raise what the CLI may spend",
    "context-full": "make the task or the relay smaller: the work does not fit one window",
    "crash": "`rekindle events -a {name}` shows what happened",
    "clean": "it has ended by itself",
    "no-progress": "look at what it did (`rekindle events -a {name}`), and at its task",
}
"""What a person does about it."""


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--once", is_flag=True, help="End where it would wait for what is outside, or need a person."
)
@click.option("--cycles", type=click.IntRange(0), help="How many cycles this run has; 0: no end.")
@budget_option
@click.option("--kept", is_flag=True, hidden=True, help="Go on with what was said before.")
@click.option("--said", is_flag=True, hidden=True, help="Your word stands in the log already.")
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
    runs, and `rekindle restart` goes on. Ctrl-C stops the agent, twice at once; the next `run` goes
    on where it was.

    With --json it prints the events of its log as they come, as `rekindle events --json` does.

    With `fleet:` in the manifest a host of the fleet runs it, and this command ends at once.
    """
    project = config.load(here())
    require_operator(project)
    name = agent_of(project, agent)
    if project.settings.fleet is not None:
        for option, is_said in (("--once", once), ("--kept", kept or said)):
            if is_said:
                refuse_fleet(project, option)
        ensure_trust(project, trust=trust)
        run_on_fleet(
            project,
            project.settings.fleet,
            name,
            cycles,
            unbounded=budget == "none",
            as_json=as_json,
        )
        return 0
    if kept or said:
        require_trust(project.path)  # a watchdog, or `up`, started us: only a person accepts
    else:
        ensure_trust(project, trust=trust)
    if not (kept or as_json):
        _print_exposed(project, name)
    store = open_store(project, say=print_note)
    if not (kept or said):
        accept_log(store, name)
    lines = _follow_log(store, name) if as_json else None
    heard = _while_read(_tell_events(name, lines) if lines else _for_people(name))
    if not as_json and not kept and not said:
        echo(f"{name}: {_bounds(project, name, lifted=budget == 'none')}", err=True)
    try:
        outcome = keep_running(
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
    return _ended(name, outcome, silent=as_json)


def _print_exposed(project: Project, name: str) -> None:
    if words := protected.exposed(project, name):
        echo(f"Note: {words} (→ {protected.EXPOSED_HINT})", err=True)
    if words := guarded_path.explain_path(project, name):
        echo(f"Note: {words} (→ {guarded_path.PATH_HINT})", err=True)


def _bounds(project: Project, name: str, *, lifted: bool) -> str:
    """Return the bounds of the run, on one line."""
    cap = project.manifest.agents[name].budget
    ends = budgets.in_words(cap) if cap else ""
    bounds = idle.bounds_in_words(project.settings.runtime.progress, lifted=lifted)
    return "; ".join(filter(None, (ends, bounds)))


def _ended(name: str, outcome: Outcome, *, silent: bool) -> int:
    if outcome.kind == "clean":
        if not silent:
            words = f": {outcome.words}" if outcome.words else ""
            secho(f"✓ {name}: cycle {outcome.cycle} is done{words}", fg="green")
        return 0
    if outcome.kind == "unwanted":
        if not silent:
            echo(f"{name}: is not to run")
        return 0
    if outcome.kind == "interrupted":
        if not silent:
            echo(f"{name}: {_goes_on(name, outcome)}")
        return INTERRUPTED
    words = outcome.words or (outcome.last.words if outcome.last else "") or outcome.kind
    where = "after" if outcome.kind in _BETWEEN else "in"
    raise AgentError(
        f"{name} stopped {where} cycle {outcome.cycle}: {words}",
        hint=_HINTS.get(outcome.kind, _HINTS["crash"]).format(name=name),
    )


def _goes_on(name: str, outcome: Outcome) -> str:
    if outcome.safe:
        # The next run would be in safe mode again.
        return f"stopped, in safe mode ({outcome.safe}): `rekindle restart {name}` goes on"
    return f"stopped; `rekindle run {name}` goes on where it was"


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
    def tell(report: Report) -> None:
        match report:
            case Launching():
                how = "the same session goes on" if report.resumes else "a fresh session"
                told = ", told what was interrupted" if report.recovery else ""
                which = f" ({report.session[:8]})" if report.session else ""
                secho(f"{name}: cycle {report.cycle}, {how}{which}{told}", bold=True)
            case Called():
                echo(f"  {one_line(f'· {report.tool} {report.about}', REPORT_CHARACTERS)}")
            case Said() | Warned():
                echo(f"  {one_line(report.text, REPORT_CHARACTERS)}")
            case Retried():
                echo(
                    f"  the model refused ({report.status or 'no answer'}); the CLI tries again in"
                    f" {report.seconds:.0f} s"
                )
            case Compacted():
                echo("  the conversation was compacted")
            case Fell():
                _fell(report)
            case Handed() | HandedOff() | Noticed() | Waits() | InSafeMode() | CallRefused():
                _stands(name, report)
            case Trouble() | SettingsChanged():
                _warn(name, report)
            case _:
                pass

    return tell


def _warn(name: str, report: Trouble | SettingsChanged) -> None:
    if isinstance(report, SettingsChanged):
        print_changes(name, report.changes)
    else:
        secho(f"  ! {report.words}", fg="yellow", err=True)


def _stands(
    name: str, report: Handed | HandedOff | Noticed | Waits | InSafeMode | CallRefused
) -> None:
    """How things stand, and what to do about it."""
    match report:
        case Handed():
            _handed(name, report)
        case HandedOff():
            by = "a model" if report.how == "headless" else "what the log, git and the turns say"
            why = f" ({report.words})" if report.words else ""
            echo(f"{name}: a checkpoint was written by {by}{why}; a fresh session goes on")
        case Noticed():
            secho(f"! {report.words}", fg="yellow")
        case CallRefused():
            secho(
                f"  ✗ {one_line(report.call, REPORT_CHARACTERS)}: refused, no permission", fg="red"
            )
            echo(f"    → {report.command}")
        case Waits():
            echo(f"{name}: {_waits(report)}")
        case InSafeMode():
            mend = _MENDS.get(report.why, _MENDS["crash"]).format(name=name)
            secho(f"{name}: in safe mode: {report.words or report.why}", fg="red")
            here = ", or Enter here" if sys.stdin.isatty() else ""
            echo(f"  → {mend}; then `{report.command or f'rekindle restart {name}'}`{here}")


def _waits(report: Waits) -> str:
    at = f"{report.until.astimezone():%Y-%m-%d %H:%M:%S}"
    why = {
        "limit": "waits for its usage limit to pass",
        "overload": "waits for the model, which is overloaded",
        "network": "waits for the network",
        "idle": "made no progress lately: the next launch waits",
    }.get(report.why, "pauses after a crash")
    return f"{why}, until {at}"


def _handed(name: str, report: Handed) -> None:
    how = {
        "draft": "the agent has written the relay",
        "edit": "the agent has edited the relay",
        "summary": "the agent wrote no relay: a summary of what it did is handed on",
        "carried": "the agent wrote no relay: what is known of its work is handed on",
    }.get(report.how, "no relay was written")
    verdict = f"; {report.verdict}: {report.words}" if report.verdict else ""
    echo(f"{name}: cycle {report.cycle} is over, {how}{verdict}")


def _fell(report: Fell) -> None:
    if report.exit.kind == "clean":
        if report.swept:
            echo(f"  ended what it had left running ({report.swept})")
        return
    left = f"; ended what it had left running ({report.swept})" if report.swept else ""
    secho(f"! {report.exit.words or report.exit.kind}{left}", fg="yellow")
