"""`rekindle plugin`: bring Rekindle into the agent CLIs that you use yourself."""

import sys
from collections.abc import Sequence

import click

from rekindle import __version__
from rekindle.cli.options import json_option
from rekindle.cli.output import echo, print_json, style_text
from rekindle.documents.plugins.plugin_clis import CLIS
from rekindle.errors import AgentError, CheckFailedError, ProgramMissingError, UsageError
from rekindle.flows.plugins import install_plugin as flow
from rekindle.flows.plugins.install_plugin import PluginPlace, PluginReport
from rekindle.formats.identifiers import to_one_line
from rekindle.system.processes.program_search import find_executable
from rekindle.wiring.access.operator_check import refuse_any_agent
from rekindle.wiring.plugin_places import find_places

_TRUST_STEP = "start `codex`, and trust the hooks of rekindle with /hooks"

cli_argument = click.argument("clis", nargs=-1, type=click.Choice(list(CLIS)), metavar="[CLI]...")


@click.group()
def plugin() -> None:
    """Add Rekindle to Claude Code, Codex or Gemini CLI as a plugin.

    The plugin records your own sessions, and tells the next session about the state of the work. It
    also gives the agent Rekindle's tools and a skill. CLI is claude, codex or gemini. The default
    is every one of them that is installed.
    """


@plugin.command()
@cli_argument
@click.option("--trust", is_flag=True, help="Accept the plugin's hooks without asking.")
def install(clis: Sequence[str], trust: bool) -> None:
    """Install the plugin, or update it to this version of Rekindle.

    Rekindle shows the commands that the plugin's hooks run, asks for your consent, and uses the
    CLI's own commands.
    """
    refuse_any_agent("rekindle plugin install")
    for name, place in _select_places(clis):
        if not (trust or _ask_for_consent(place)):
            echo(f"· {name}: not installed")
            continue
        runs_hooks = flow.install_plugin(place)
        echo(f"✓ {name}: plugin {__version__} installed")
        if not runs_hooks:
            echo(f"· {name}: its hooks are not trusted yet: {_TRUST_STEP}")
        echo(f"Next: start `{name}` in a project; `rekindle status` there shows its session.")


@plugin.command()
@cli_argument
def remove(clis: Sequence[str]) -> None:
    """Remove the plugin, and restore the CLI's settings.

    The records of your sessions stay. `rekindle forget FOLDER` removes those of a project.
    """
    refuse_any_agent("rekindle plugin remove")
    for name, place in _select_places(clis):
        if flow.remove_plugin(place):
            echo(f"✓ {name}: plugin removed")
        else:
            echo(f"Nothing to do: {name} has no plugin of Rekindle.")


@plugin.command()
@json_option
def status(as_json: bool) -> None:
    """Show in which CLIs the plugin is installed, and whether it matches this version.

    The exit code is 8 if a plugin is outdated, disabled or not trusted.
    """
    reports = {name: flow.examine_plugin(place) for name, place in find_places()}
    if as_json:
        rows = [
            {
                "cli": name,
                "state": report.state,
                "version": report.version,
                "problem": report.problem,
            }
            for name, report in reports.items()
        ]
        print_json({"plugins": rows})
    else:
        for name, report in reports.items():
            _print_report(name, report)
        if not reports:
            echo(f"None of these CLIs is installed: {', '.join(CLIS)}.")
    if any(report.problem for report in reports.values()):
        raise CheckFailedError("a plugin needs attention", hint="follow the hint after each →")


def _print_report(name: str, report: PluginReport) -> None:
    if report.state == "not installed":
        echo(f"· {name}: not installed")
        echo(f"    → rekindle plugin install {name}")
    elif report.problem:
        echo(style_text("✗", fg="red"), f" {name}: the plugin {report.problem}")
        echo(f"    → rekindle plugin install {name}")
    else:
        echo(f"✓ {name}: plugin {report.version}")


def _select_places(clis: Sequence[str]) -> list[tuple[str, PluginPlace]]:
    """Return the named CLIs, or all that are installed."""
    for name in clis:
        if find_executable(name) is None:
            raise ProgramMissingError(
                name, "it is not on the PATH", hint=f"install {CLIS[name].title} first"
            )
    places = list(find_places(clis or CLIS))
    if not places:
        raise AgentError(
            f"none of these CLIs is on the PATH: {', '.join(CLIS)}",
            hint="install one of them, or add its folder to the PATH",
        )
    return places


def _ask_for_consent(place: PluginPlace) -> bool:
    """Show what the plugin runs, and ask the user to accept it."""
    title = place.cli.title
    echo(f"The plugin is in {to_one_line(str(place.folder))}.", err=True)
    echo(f"In every session, {title} will run these commands outside its sandbox:", err=True)
    for command in place.list_hook_commands():
        echo(f"  {command}", err=True)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "there is no terminal to ask whether you accept these hooks",
            hint="read them, and repeat the command with --trust",
        )
    return click.confirm(f"Install the plugin in {title}?", default=False, err=True)
