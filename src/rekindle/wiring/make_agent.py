"""Build an agent's specification from the manifest, the store and the host."""

import sys

from rekindle.config import Project
from rekindle.documents.clone_files import make_work_branch
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.policy.handoff import window_rule
from rekindle.policy.settings.runtime_settings import AgentDefaults, find_cycle_limit
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files
from rekindle.system.files import hook_program
from rekindle.wiring.access import protected_paths
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_environment import make_environment
from rekindle.wiring.agent_routes import find_routes
from rekindle.wiring.agent_workspaces import find_workspace
from rekindle.wiring.open_store import find_harness, read_named_file
from rekindle.wiring.sandbox_setup import make_sandbox
from rekindle.wiring.starting.start_checks import (
    find_prices,
    read_persona,
    read_program,
    read_task,
    refuse_obstacles,
)


def make_agent(
    project: Project,
    store: FileStore,
    name: str,
    program: tuple[str, ...],
    cycles: int | None = None,
    *,
    on_this_host: bool = False,
) -> AgentSpec:
    """Return the agent as described in the manifest, on the first of its routes.

    With `on_this_host`, refuse the agent if its folder or program is missing. A supervisor started
    by a watchdog skips this, because the launch records what is missing.
    """
    refuse_obstacles(project, name, program, on_this_host=on_this_host)
    entry, harness = project.manifest.agents[name], find_harness(project, name)
    store.create(name)
    persona, instructions = read_persona(project, name)
    hook_program.provide_program()
    folder = find_agent_dir(project, name)
    environment = make_environment(project, name)
    return AgentSpec(
        name=name,
        harness=harness,
        folder=str(folder),
        task=read_task(project, name),
        rules=read_named_file(project, entry.rules, "rules"),
        persona=persona,
        persona_name=entry.persona or AgentDefaults().persona,
        instructions=instructions,
        environment=environment.variables,
        hook=(sys.executable, "-I", "-S", str(hook_program.find_hook_path())),
        gate=(sys.executable, "-I", "-S", str(hook_program.find_hook_path("gate"))),
        scratch=str(private_files.find_private_project(project.path).make_agent(name).launch),
        protected=(
            *protected_paths.list_protected(project.path, folder),
            *environment.path.protected,
        ),
        path=environment.path.agent,
        program=program or read_program(project, name),
        budget=entry.budget,
        prices=find_prices(project, name),
        stays=entry.mode == "stay",
        cycles=find_cycle_limit(entry) if cycles is None else cycles,
        drafts=True,
        prepare=tuple(entry.prepare or ()),
        branch=make_work_branch(name) if find_workspace(project, name) else "",
        threshold=window_rule.find_threshold(entry.handover, project.settings.runtime.relay),
        project=str(project.path),
        relay=entry.relay or "",
        until_claimed=bool(entry.until_claimed),
        converges=bool(entry.convergence),
        keep=tuple(entry.keep or ()),
        may_control=bool(entry.may_control),
        sandbox=make_sandbox(project, name, store.folder(name), persona.system_prompt_file),
        account=find_routes(project, name)[0].account,
        credentials=project.credentials,
    )
