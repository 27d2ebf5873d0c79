"""`rekindle run`."""

from collections.abc import Callable

import click
import msgspec

from rekindle.cli.options import as_json, open_agent, print_json
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Called, Compacted, Retried, Said
from rekindle.errors import AgentError
from rekindle.flows.launch import Fell, Launching, Report, Trouble
from rekindle.flows.run_cycle import Outcome
from rekindle.wiring.run import run_cycle

INTERRUPTED = 130
_WIDTH = 96
_HINTS = {
    "limit": "when the limit has passed, `rekindle run` goes on where it was",
    "overload": "try again later: `rekindle run` goes on where it was",
    "network": "when the network is back, `rekindle run` goes on where it was",
    "auth": "log the agent's CLI in, or mend its key, then `rekindle run` goes on",
    "billing": "pay, or raise the spend limit, then `rekindle run` goes on",
    "budget": "raise what the CLI may spend, then `rekindle run` goes on",
    "context-full": "the work does not fit one window: make the task or the relay smaller",
    "crash": "`rekindle events` shows what happened; `rekindle run` tries again",
}


@click.command()
@click.argument("agent", required=False)
@as_json
def run(agent: str | None, as_json: bool) -> int:
    """Run one cycle of AGENT, and keep it alive until it is done.

    A process that crashes is started again in the same session, after everything that it left
    running was ended; where the session cannot be brought back, a fresh one is told where the work
    stands. Ctrl-C stops the agent, twice at once; the next `run` goes on where it was.
    """
    project, store, name = open_agent(agent)
    tell = _as_lines if as_json else _for_people(name)
    outcome = run_cycle(project, store, name, _while_read(tell))
    if as_json:
        print_json({"report": "outcome", "outcome": outcome})
    return _ended(name, outcome, silent=as_json)


def _ended(name: str, outcome: Outcome, *, silent: bool) -> int:
    if outcome.kind == "clean":
        if not silent:
            click.secho(f"✓ {name}: cycle {outcome.cycle} is done", fg="green")
        return 0
    if outcome.kind == "interrupted":
        if not silent:
            click.echo(f"{name}: stopped; `rekindle run {name}` goes on where it was")
        return INTERRUPTED
    words = outcome.last.words if outcome.last else outcome.kind
    raise AgentError(
        f"{name} stopped before cycle {outcome.cycle} was done: {words}",
        hint=_HINTS.get(outcome.kind, "`rekindle events` shows what happened"),
    )


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


def _as_lines(report: Report) -> None:
    print_json({"report": type(report).__name__.lower(), **msgspec.to_builtins(report)})


def _for_people(name: str) -> Callable[[Report], None]:
    def tell(report: Report) -> None:
        match report:
            case Launching():
                how = "the same session goes on" if report.resumes else "a fresh session"
                told = ", told what was interrupted" if report.recovery else ""
                which = f" ({report.session[:8]})" if report.session else ""
                click.secho(f"{name}: cycle {report.cycle}, {how}{which}{told}", bold=True)
            case Called():
                click.echo(f"  {one_line(f'· {report.tool} {report.about}', _WIDTH)}")
            case Said():
                click.echo(f"  {one_line(report.text, _WIDTH)}")
            case Retried():
                click.echo(
                    f"  the model refused ({report.status or 'no answer'}); the CLI tries again in"
                    f" {report.seconds:.0f} s"
                )
            case Compacted():
                click.echo("  the conversation was compacted")
            case Fell() if report.exit.kind != "clean":
                _fell(report)
            case Fell() if report.swept:
                click.echo(f"  ended what it had left running ({report.swept})")
            case Trouble():
                click.secho(f"  ! {report.words}", fg="yellow", err=True)
            case _:
                pass

    return tell


def _fell(report: Fell) -> None:
    left = f"; ended what it had left running ({report.swept})" if report.swept else ""
    click.secho(f"! {report.exit.words or report.exit.kind}{left}", fg="yellow")
