"""`rekindle hooks`: install, remove, export and check hooks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from rekindle.cli.options import (
    add_agent_argument,
    find_current_folder,
    is_typed,
    json_option,
    open_project,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import (
    echo,
    print_json,
    style_text,
)
from rekindle.cli.setup.hook_selection import (
    examine_all,
    find_agent_location,
    find_location,
    select_agents,
)
from rekindle.cli.trust_prompt import (
    ensure_trust,
    print_changes,
    trust_option,
)
from rekindle.config import Project
from rekindle.errors import CheckFailedError, RekindleError, UnacceptedError, UsageError
from rekindle.flows.hooks import install_hooks
from rekindle.flows.hooks.examine_hooks import HookReport
from rekindle.flows.hooks.export_hooks import export_hooks
from rekindle.flows.hooks.hook_locations import (
    HOOK_LEVELS,
    HookLevel,
    HookLocation,
)
from rekindle.flows.hooks.install_hooks import HookChanges
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.files import FileStore
from rekindle.wiring import agent_dir_list
from rekindle.wiring.access.trust_checks import accept_settings
from rekindle.wiring.open_store import HARNESSES

level_option = click.option(
    "--for",
    "level",
    type=click.Choice(HOOK_LEVELS),
    help="local: for you in this project; project: for everyone who works on it; user: for you in"
    " every project. "
    "Default: the first of these that the CLI supports.",
)
harness_option = click.option(
    "--harness",
    type=click.Choice(tuple(HARNESSES)),
    help="CLI to change. Default: the agent's CLI.",
)

all_option = click.option(
    "--all", "every", is_flag=True, help="Change the hooks for every agent in the project."
)


class _AgentHooks(msgspec.Struct, frozen=True):
    """Hooks in a settings file, and the agent whose sessions they report."""

    place: HookLocation
    agent: str
    """Agent name; empty if the hooks use the session's folder to find the agent."""
    done: HookChanges


@click.group()
def hooks() -> None:
    """Let an agent CLI report starts, prompts, tool calls and exits to Rekindle.

    Rekindle adds the hooks to the CLI's settings and leaves all other keys and hooks unchanged.
    """


@hooks.command()
@level_option
@harness_option
@add_agent_argument
@all_option
@trust_option
@json_option
def install(  # noqa: PLR0917 - one parameter per option
    level: HookLevel | None,
    harness: str | None,
    agent: str | None,
    every: bool,
    trust: bool,
    as_json: bool,
) -> None:
    """Add AGENT's hooks to its CLI's settings, or update them.

    The settings are in the agent's working folder (`dir:`). With --all, Rekindle installs hooks for
    every agent. It never replaces another agent's hooks.

    \b
    claude-code
      local    .claude/settings.local.json
      project  .claude/settings.json, with the path of this machine's Python
      user     settings.json in $CLAUDE_CONFIG_DIR or ~/.claude
    codex
      project  .codex/hooks.json
      user     hooks.json in $CODEX_HOME or ~/.codex
    gemini
      project  .gemini/settings.json
      user     .gemini/settings.json in $GEMINI_CLI_HOME or ~

    User hooks identify the project and the agent by the folder in which the CLI was started.
    """  # noqa: D301 - click keeps the lines after \b as they are
    is_named = agent and (is_typed("named") or is_typed("agent"))
    if level == "user":
        if is_named or every:
            raise UsageError(
                "hooks for the user cannot be limited to an agent",
                hint="omit AGENT, --agent and --all",
            )
        place = find_location(level, harness, None)
        _print_installed(
            [_AgentHooks(place, "", install_hooks.install_hooks(place, None))], as_json=as_json
        )
        return
    project, store = open_project()
    names = select_agents(project, harness) if every else []
    if not every:
        only = select_agents(project, harness) if harness and not agent else []
        names = [resolve_agent(project, agent or (only[0] if len(only) == 1 else None))]
    require_operator(project)
    ensure_trust(project, trust=trust)
    done, refused = [], []
    for name in names:
        try:
            done.append(_install_for(project, store, name, level, harness))
        except RekindleError as error:
            refused.append(error)
            if every and not as_json:
                echo(style_text("✗", fg="red"), f" {name}: {error}", err=True)
    agent_dir_list.write_agent_dirs(project.path)
    if done or every:
        _print_installed(done, every=every, as_json=as_json)
    if refused:
        raise refused[0]


def _install_for(
    project: Project, store: FileStore, name: str, level: HookLevel | None, harness: str | None
) -> _AgentHooks:
    place = find_agent_location(project, name, level, harness)
    others = [store.folder(other).path for other in project.manifest.agents if other != name]
    print_changes(name, accept_settings(project, name))
    if not store.exists(name):
        store.create(name)
    return _AgentHooks(
        place, name, install_hooks.install_hooks(place, store.folder(name).path, others)
    )


def _print_installed(installed: list[_AgentHooks], *, every: bool = False, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "agent": agent_hooks.agent,
                "harness": agent_hooks.place.harness.NAME,
                "level": agent_hooks.place.level,
                "settings": agent_hooks.place.shown,
                "changed": agent_hooks.done.settings_changed or agent_hooks.done.program_changed,
            }
            for agent_hooks in installed
        ]
        print_json({"hooks": rows} if every else rows[0])
        return
    for agent_hooks in installed:
        place, done = agent_hooks.place, agent_hooks.done
        if done.settings_changed:
            echo(f"✓ hooks installed in {place.shown}")
        elif done.program_changed:
            echo(f"✓ hooks updated in {place.shown}")
        else:
            echo(f"✓ hooks were already installed in {place.shown}")
    changed = [agent_hooks for agent_hooks in installed if agent_hooks.done.settings_changed]
    for note in dict.fromkeys(note for agent_hooks in changed for note in _list_notes(agent_hooks)):
        echo(f"· {note}")
    if installed:
        place = installed[0].place
        where = "in any project with an agent" if place.level == "user" else "here"
        if place.folder and place.folder.resolve() != find_current_folder().resolve():
            where = f"in {to_one_line(str(place.folder))}"
        program = place.files.program
        echo(f"Next: start `{program}` {where}; `rekindle status` shows when it was last active.")


def _list_notes(agent_hooks: _AgentHooks) -> Iterator[str]:
    if agent_hooks.place.level == "local" and agent_hooks.done.settings_made:
        yield "the file contains the path of this machine's Python: keep it out of git"
    if agent_hooks.place.level == "project":
        yield (
            "the file contains the path of this machine's Python: on another machine, install the "
            "hooks again"
        )
    if agent_hooks.done.status_line_added:
        yield "its status line shows the agent: `rekindle statusline`"
    if agent_hooks.place.files.trust:
        yield agent_hooks.place.files.trust


@hooks.command()
@level_option
@harness_option
@add_agent_argument
@all_option
@json_option
def uninstall(
    level: HookLevel | None, harness: str | None, agent: str | None, every: bool, as_json: bool
) -> None:
    """Remove AGENT's hooks from its CLI's settings.

    With --all, Rekindle removes the hooks for every agent in the project, at every level except the
    user level.
    """
    if every:
        places = [
            report.place
            for report in examine_all()
            if report.state != "not installed"
            and report.place.level in {level or "local", level or "project"}
            and harness in {None, report.place.harness.NAME}
        ]
    else:
        places = [find_location(level, harness, agent)]
        _refuse_unaccepted(places[0])
    rows = []
    for place in places:
        done = install_hooks.uninstall_hooks(place)
        changed = {"settings": place.shown, "changed": done.settings_changed}
        rows.append({"harness": place.harness.NAME, "level": place.level, **changed})
        if not as_json:
            _print_removed(place, done)
    if as_json:
        print_json({"hooks": rows} if every else rows[0])
    elif not places:
        echo("Nothing to do: Rekindle has no hooks here.")


def _refuse_unaccepted(place: HookLocation) -> None:
    """Refuse to change settings outside the project in a folder that the user has not accepted."""
    if place.folder and place.folder not in agent_dir_list.list_hook_folders(place.home.parent):
        raise UnacceptedError(
            f"`dir:` {to_one_line(str(place.folder))}",
            "is outside the project, and you have not accepted it",
            "`rekindle hooks install` accepts it",
        )


def _print_removed(place: HookLocation, done: HookChanges) -> None:
    if done.settings_removed:
        echo(f"✓ hooks removed, and {place.shown} too, which contained nothing else")
    elif done.settings_changed:
        echo(f"✓ hooks removed from {place.shown}")
    else:
        echo(f"Nothing to do: Rekindle has no hooks in {place.shown}.")


@hooks.command(short_help="Write the hooks as a package for a CLI.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--harness",
    type=click.Choice(tuple(HARNESSES)),
    required=True,
    help="CLI that the package is for.",
)
def export(folder: Path, harness: str) -> None:
    """Write the hooks to FOLDER as a package that the CLI can install itself.

    The package is a plugin for Claude Code, an extension for Gemini CLI, or a hooks file for Codex.
    Your settings are not changed. The hooks report sessions to the project in which you start
    the CLI, if it has only one agent.
    """
    paths = export_hooks(HARNESSES[harness], folder)
    for path in paths:
        echo(f"✓ wrote {path}")
    files = HARNESSES[harness].HOOK_FILES
    if files and files.trust:
        echo(f"· {files.trust}")
    if files and files.taken_in:
        echo(f"Next: {files.taken_in.format(folder=paths[0].parent)}")


@hooks.command()
@json_option
def status(as_json: bool) -> None:
    """Show where hooks are installed, and whether they can run.

    The exit code is 8 if any hooks are broken. The output shows the command that fixes them.
    """
    reports = examine_all()
    if as_json:
        print_json({"hooks": [_make_json(report) for report in reports]})
    else:
        for report in reports:
            _print_report(report)
        if not reports:
            echo("The agents here have no CLI with hooks; `rekindle run` does not need hooks.")
        elif all(report.state == "not installed" for report in reports):
            echo("Next: `rekindle hooks install`.")
    if any(report.is_broken for report in reports):
        fixes = [report.fix for report in reports if report.is_broken]
        are_commands = all(fix.startswith("rekindle ") for fix in fixes)
        hint = "run the command after each →" if are_commands else "follow the hint after each →"
        raise CheckFailedError("some hooks are broken", hint=hint)


def _make_json(report: HookReport) -> dict[str, Any]:
    return {
        "harness": report.place.harness.NAME,
        "level": report.place.level,
        "settings": report.place.shown,
        "state": report.state,
        "problems": report.problems,
        "fix": report.fix,
    }


def _print_report(report: HookReport) -> None:
    mark = (
        style_text("✗", fg="red")
        if report.is_broken
        else "✓"
        if report.state == "installed"
        else "·"
    )
    place = report.place
    echo(mark, f" {place.harness.NAME}, {place.level}: {report.state}  ({place.shown})")
    for problem in report.problems:
        echo(f"    {problem}")
    if report.is_broken:
        echo(f"    → {report.fix}")
