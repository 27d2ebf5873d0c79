"""Find the hook settings files that the command's options select."""

import os
from pathlib import Path

from rekindle import config
from rekindle.cli.options import (
    find_current_folder,
)
from rekindle.config import Project
from rekindle.documents.manifest import AgentEntry
from rekindle.errors import RekindleError, UsageError
from rekindle.flows.hooks.examine_hooks import HookReport, examine_hooks
from rekindle.flows.hooks.hook_locations import (
    HookLevel,
    HookLocation,
    choose_default_level,
    list_levels,
    locate_hooks,
)
from rekindle.plugins import ALIASES
from rekindle.ports import Harness
from rekindle.wiring import agent_dir_list
from rekindle.wiring.open_store import HARNESSES


def examine_all() -> list[HookReport]:
    """Examine the hooks at every level. Outside a project, examine only the user level.

    Skip levels and folders without hooks, except the first one for each CLI that an agent uses.
    """
    folder = config.find_project(find_current_folder())
    used, selected = _list_used(folder), []
    for cli in HARNESSES.working():
        for level in list_levels(cli):
            places = [locate_hooks(cli, level, folder, os.environ)] if level == "user" else []
            if folder and level != "user":
                places = [
                    locate_hooks(cli, level, folder, os.environ, at)
                    for at in agent_dir_list.list_hook_folders(folder)
                ]
            reports = [examine_hooks(place) for place in places]
            there = [report for report in reports if report.state != "not installed"]
            selected += there or (reports[:1] if cli in used else [])
    return selected


def _list_used(folder: Path | None) -> list[Harness]:
    """Return the CLIs that a project's agents use, or the first supported CLI if there are none."""
    try:
        agents = config.load_project(folder).manifest.agents.values() if folder else ()
    except RekindleError:
        agents = ()  # Other commands report a broken manifest.
    names = {name for agent in agents for name in _list_harnesses(agent)}
    there = HARNESSES.working()
    return [cli for cli in there if cli.NAME in names] or there[:1]


def _list_harnesses(agent: AgentEntry) -> list[str]:
    """Return the names of the CLIs that an agent may use, its own first."""
    names = [agent.harness, *(item.use for item in agent.harnesses or ())]
    return [ALIASES.get(name, name) for name in dict.fromkeys(names)]


def select_agents(project: Project, harness: str | None) -> list[str]:
    """Return the agents that use `harness`, or by default all agents whose CLI has hooks."""
    harnesses_of = {
        name: _list_harnesses(agent)
        for name, agent in project.manifest.agents.items()
        if name not in project.workers
    }
    if harness:
        return [name for name, names in harnesses_of.items() if harness in names]
    return [
        name
        for name, (own, *_) in harnesses_of.items()
        if (cli := HARNESSES.get(own)) and cli.HOOK_FILES
    ]


def find_location(level: HookLevel | None, harness: str | None, agent: str | None) -> HookLocation:
    """Return the hook location that the options select. The agent is optional."""
    if level == "user":
        folder = config.find_project(find_current_folder())
        return locate_hooks(_choose_harness(harness, _list_used(folder)), level, folder, os.environ)
    project = config.load_project(find_current_folder())
    if name := agent or agent_dir_list.choose_agent(project, find_current_folder()):
        return find_agent_location(project, project.require_agent(name), level, harness)
    cli = _choose_harness(harness, _list_used(project.path))
    return locate_hooks(cli, level or choose_default_level(cli), project.path, os.environ)


def find_agent_location(
    project: Project, name: str, level: HookLevel | None, harness: str | None
) -> HookLocation:
    """Return an agent's hook location, which is in its working folder."""
    own = HARNESSES.get(project.manifest.agents[name].harness)
    cli, folder = (
        _choose_harness(harness, [own] if own else []),
        agent_dir_list.find_agent_dir(project, name),
    )
    at = project.path if folder == project.path.resolve() else folder
    return locate_hooks(cli, level or choose_default_level(cli), project.path, os.environ, at)


def _choose_harness(named: str | None, used: list[Harness]) -> Harness:
    if named:
        return HARNESSES[named]
    if len(used) == 1:
        return used[0]
    names = ", ".join(cli.NAME for cli in used) or ", ".join(HARNESSES)
    raise UsageError("which CLI's hooks do you mean?", hint=f"choose one with --harness: {names}")
