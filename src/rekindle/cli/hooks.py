"""`rekindle hooks`."""

import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rekindle import config
from rekindle.cli.options import as_json, here, open_agent, print_json, which_agent
from rekindle.errors import CheckFailedError, UsageError
from rekindle.flows import install_hooks
from rekindle.flows.install_hooks import LEVELS, Level, Place, Report

which_level = click.option(
    "--for",
    "level",
    type=click.Choice(LEVELS),
    default="local",
    show_default=True,
    help="local: you, in this project; project: all who share it; user: you, in every project.",
)


@click.group()
def hooks() -> None:
    """Have Claude Code report to Rekindle: starts, prompts, tool calls, ends.

    They are added to its settings: every other key, and every other hook, stays as it is.
    """


@hooks.command()
@which_level
@which_agent
@as_json
@click.pass_context
def install(context: click.Context, level: Level, agent: str | None, as_json: bool) -> None:
    r"""Add the hooks to Claude Code's settings, or renew them.

    \b
    local    .claude/settings.local.json
    project  .claude/settings.json; it then names this machine's Python
    user     settings.json in $CLAUDE_CONFIG_DIR or ~/.claude; the agent is the only one
             of the project that Claude Code works in
    """
    folder: Path | None = None
    if level == "user":
        if agent and context.get_parameter_source("agent") is ParameterSource.COMMANDLINE:
            raise UsageError(
                "hooks for every project cannot name an agent", hint="leave --agent out"
            )
        place = _place(level)
    else:
        project, store, name = open_agent(agent)
        if not store.exists(name):
            store.create(name)
        folder = store.folder(name).path
        place = install_hooks.place_of(level, project.path, os.environ)
    done = install_hooks.install(place, folder)
    if as_json:
        changed = done.settings_changed or done.program_changed
        print_json({"level": level, "settings": place.shown, "changed": changed})
        return
    if done.settings_changed:
        click.echo(f"✓ hooks installed in {place.shown}")
    elif done.program_changed:
        click.echo(f"✓ hooks in {place.shown} renewed")
    else:
        click.echo(f"✓ already installed in {place.shown}")
    if level == "local" and done.settings_made:
        click.echo("· it names this machine's Python: keep it out of git")
    if level == "project" and done.settings_changed:
        click.echo("· it names this machine's Python: whoever shares it elsewhere installs again")
    where = "in any project with an agent" if level == "user" else "here"
    click.echo(f"Next: start `claude` {where}; `rekindle status` shows when it was last active.")


@hooks.command()
@which_level
@as_json
def uninstall(level: Level, as_json: bool) -> None:
    """Take the hooks out again: the settings are as they were before."""
    place = _place(level)
    done = install_hooks.uninstall(place)
    if as_json:
        print_json({"level": level, "settings": place.shown, "changed": done.settings_changed})
    elif done.settings_removed:
        click.echo(f"✓ hooks removed, and with them {place.shown}, which held nothing else")
    elif done.settings_changed:
        click.echo(f"✓ hooks removed from {place.shown}")
    else:
        click.echo(f"No hooks of ours in {place.shown}: nothing to do.")


@hooks.command()
@as_json
def status(as_json: bool) -> None:
    """Where the hooks are installed, and whether they can run.

    Ends with 8 where some are broken, and names the command that mends them.
    """
    found = examine_all()
    if as_json:
        print_json([_as_json(one) for one in found])
    else:
        for one in found:
            _print(one)
        if all(one.state == "not installed" for one in found):
            click.echo("Next: `rekindle hooks install`.")
    if any(one.is_broken for one in found):
        raise CheckFailedError("some hooks are broken", hint="run the commands after each arrow")


def examine_all() -> list[Report]:
    """Every level that there is here: outside of a project, only the user's."""
    project = config.find(here())
    levels = LEVELS if project else ("user",)
    return [
        install_hooks.examine(install_hooks.place_of(level, project, os.environ))
        for level in levels
    ]


def _place(level: Level) -> Place:
    project = None if level == "user" else config.load(here()).path
    return install_hooks.place_of(level, project, os.environ)


def _as_json(one: Report) -> dict[str, Any]:
    return {
        "level": one.place.level,
        "settings": one.place.shown,
        "state": one.state,
        "problems": one.problems,
        "mend": one.mend,
    }


def _print(one: Report) -> None:
    mark = click.style("✗", fg="red") if one.is_broken else "✓" if one.state == "installed" else "·"
    click.echo(f"{mark} {one.place.level}: {one.state}  ({one.place.shown})")
    for problem in one.problems:
        click.echo(f"    {problem}")
    if one.is_broken:
        click.echo(f"    → {one.mend}")
