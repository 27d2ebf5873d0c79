"""`rekindle hooks`."""

import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rekindle import config
from rekindle.cli.options import as_json, here, open_files, which_agent
from rekindle.cli.output import echo, print_json, styled
from rekindle.cli.trust import ensure_trust, trust_option
from rekindle.errors import CheckFailedError, RekindleError, UsageError
from rekindle.flows import install_hooks
from rekindle.flows.export_hooks import export_hooks
from rekindle.flows.install_hooks import LEVELS, Level, Place, Report
from rekindle.plugins import ALIASES
from rekindle.ports import Harness
from rekindle.wiring.store import HARNESSES

which_level = click.option(
    "--for",
    "level",
    type=click.Choice(LEVELS),
    help="local: you, in this project; project: all who share it; user: you, in every project. "
    "Default: the first of them that the CLI has.",
)
which_harness = click.option(
    "--harness",
    type=click.Choice(tuple(HARNESSES)),
    help="The CLI; default: the agent's own.",
)


@click.group()
def hooks() -> None:
    """Have an agent CLI report to Rekindle: starts, prompts, tool calls, ends.

    They are added to its settings: every other key, and every other hook, stays as it is.
    """


@hooks.command()
@which_level
@which_harness
@which_agent
@trust_option
@as_json
@click.pass_context
def install(  # noqa: PLR0917 - one for each option
    context: click.Context,
    level: Level | None,
    harness: str | None,
    agent: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Add the hooks to a CLI's settings, or renew them.

    \b
    claude-code
      local    .claude/settings.local.json
      project  .claude/settings.json; it then names this machine's Python
      user     settings.json in $CLAUDE_CONFIG_DIR or ~/.claude; the agent is the only one
               of the project that the CLI works in
    codex
      project  .codex/hooks.json
      user     hooks.json in $CODEX_HOME or ~/.codex
    gemini
      project  .gemini/settings.json
      user     .gemini/settings.json in $GEMINI_CLI_HOME or ~
    """  # noqa: D301 - what keeps the lines as they are is that very character
    folder: Path | None = None
    if level == "user":
        if agent and context.get_parameter_source("agent") is ParameterSource.COMMANDLINE:
            raise UsageError(
                "hooks for every project cannot name an agent", hint="leave --agent out"
            )
        place = _place(level, harness)
    else:
        project, store, name = open_files(agent or _only_agent_of(harness))
        ensure_trust(project, trust=trust)
        own = HARNESSES.get(project.manifest.agents[name].harness)
        cli = _meant(harness, [own] if own else [])
        level = level or install_hooks.first_level(cli)
        place = install_hooks.place_of(cli, level, project.path, os.environ)
        if not store.exists(name):
            store.create(name)
        folder = store.folder(name).path
    done = install_hooks.install(place, folder)
    if as_json:
        changed = done.settings_changed or done.program_changed
        told = {"harness": place.harness.NAME, "level": level, "settings": place.shown}
        print_json({**told, "changed": changed})
        return
    if done.settings_changed:
        echo(f"✓ hooks installed in {place.shown}")
    elif done.program_changed:
        echo(f"✓ hooks in {place.shown} renewed")
    else:
        echo(f"✓ already installed in {place.shown}")
    if level == "local" and done.settings_made:
        echo("· it names this machine's Python: keep it out of git")
    if level == "project" and done.settings_changed:
        echo("· it names this machine's Python: on another machine, install the hooks again")
    files = place.files
    if files.trust and done.settings_changed:
        echo(f"· {files.trust}")
    where = "in any project with an agent" if level == "user" else "here"
    echo(f"Next: start `{files.program}` {where}; `rekindle status` shows when it was last active.")


@hooks.command()
@which_level
@which_harness
@as_json
def uninstall(level: Level | None, harness: str | None, as_json: bool) -> None:
    """Take the hooks out again: the settings are as they were before."""
    place = _place(level, harness)
    done = install_hooks.uninstall(place)
    if as_json:
        changed = {"settings": place.shown, "changed": done.settings_changed}
        print_json({"harness": place.harness.NAME, "level": place.level, **changed})
    elif done.settings_removed:
        echo(f"✓ hooks removed, and with them {place.shown}, which held nothing else")
    elif done.settings_changed:
        echo(f"✓ hooks removed from {place.shown}")
    else:
        echo(f"No hooks of ours in {place.shown}: nothing to do.")


@hooks.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--harness", type=click.Choice(tuple(HARNESSES)), required=True, help="The CLI it is for."
)
def export(folder: Path, harness: str) -> None:
    """Write the hooks into FOLDER as a package that the CLI itself installs.

    A plugin of Claude Code, an extension of Gemini CLI, a hooks file of Codex: nothing of yours is
    changed, and the agent is the only one of the project that the CLI works in.
    """
    made = export_hooks(HARNESSES[harness], folder)
    for path in made:
        echo(f"✓ wrote {path}")
    files = HARNESSES[harness].HOOK_FILES
    if files and files.trust:
        echo(f"· {files.trust}")
    if files and files.taken_in:
        echo(f"Next: {files.taken_in.format(folder=made[0].parent)}")


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
        if not found:
            echo("No agent here has a CLI with hooks: `rekindle run` needs none.")
        elif all(one.state == "not installed" for one in found):
            echo("Next: `rekindle hooks install`.")
    if any(one.is_broken for one in found):
        mends = [one.mend for one in found if one.is_broken]
        told = all(mend.startswith("rekindle ") for mend in mends)
        hint = "run the commands after each arrow" if told else "do what stands after each arrow"
        raise CheckFailedError("some hooks are broken", hint=hint)


def examine_all() -> list[Report]:
    """Every level that there is here: outside of a project, only the user's.

    Of a CLI that no agent uses, only where something is installed.
    """
    folder = config.find(here())
    found = [
        install_hooks.examine(install_hooks.place_of(cli, level, folder, os.environ))
        for cli in HARNESSES.working()
        for level in install_hooks.levels_of(cli)
        if folder or level == "user"
    ]
    used = _used(folder)
    return [one for one in found if one.place.harness in used or one.state != "not installed"]


def _used(folder: Path | None) -> list[Harness]:
    """The CLIs of a project's agents; outside of one, the first that there is."""
    try:
        agents = config.load(folder).manifest.agents.values() if folder else ()
    except RekindleError:
        agents = ()  # a manifest that cannot be read is said by others
    names = {ALIASES.get(agent.harness, agent.harness) for agent in agents}
    there = HARNESSES.working()
    return [cli for cli in there if cli.NAME in names] or there[:1]


def _only_agent_of(harness: str | None) -> str | None:
    """The agent that a CLI works for, where it is one alone."""
    agents = config.load(here()).manifest.agents if harness else {}
    those = [
        name
        for name, agent in agents.items()
        if ALIASES.get(agent.harness, agent.harness) == harness
    ]
    return those[0] if len(those) == 1 else None


def _place(level: Level | None, harness: str | None) -> Place:
    """The place that is meant where no agent is named."""
    folder = config.find(here()) if level == "user" else config.load(here()).path
    cli = _meant(harness, _used(folder))
    return install_hooks.place_of(cli, level or install_hooks.first_level(cli), folder, os.environ)


def _meant(given: str | None, used: list[Harness]) -> Harness:
    if given:
        return HARNESSES[given]
    if len(used) == 1:
        return used[0]
    names = ", ".join(cli.NAME for cli in used) or ", ".join(HARNESSES)
    raise UsageError("hooks of which CLI?", hint=f"say --harness with one of: {names}")


def _as_json(one: Report) -> dict[str, Any]:
    return {
        "harness": one.place.harness.NAME,
        "level": one.place.level,
        "settings": one.place.shown,
        "state": one.state,
        "problems": one.problems,
        "mend": one.mend,
    }


def _print(one: Report) -> None:
    mark = styled("✗", fg="red") if one.is_broken else "✓" if one.state == "installed" else "·"
    echo(mark, f" {one.place.harness.NAME}, {one.place.level}: {one.state}  ({one.place.shown})")
    for problem in one.problems:
        echo(f"    {problem}")
    if one.is_broken:
        echo(f"    → {one.mend}")
