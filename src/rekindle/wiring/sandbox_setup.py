"""Build an agent's sandbox from the manifest and this host."""

import os
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import ManifestError, SandboxError
from rekindle.flows.supervisor_ports import AgentSandbox
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.sandbox.allowed_hosts import is_on_this_host
from rekindle.policy.sandbox.mounts import GIT_FOLDER, SandboxPaths, is_inside
from rekindle.policy.sandbox.profile import SandboxProfile, choose_profile
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.folders import agent_folder, private_files
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system.files import hook_program, user_folder
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.sandbox import containments, probe
from rekindle.wiring.access import protected_paths
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_workspaces import find_workspace


def find_profile(project: Project, name: str) -> SandboxProfile | None:
    """Return the agent's sandbox settings, or None if it has no sandbox."""
    entry = project.manifest.agents[name]
    persona = project.manifest.personas.get(entry.persona or AgentDefaults().persona)
    return choose_profile(entry.sandbox, persona.sandbox if persona else None, floor=project.floor)


def make_sandbox(
    project: Project, name: str, folder: AgentFolder, system_prompt: str | None
) -> AgentSandbox | None:
    """Return the agent's sandbox, or None if it has none."""
    profile = find_profile(project, name)
    if profile is None:
        return None
    check_paths(project, name)
    entry, work = project.manifest.agents[name], find_agent_dir(project, name)
    root = project.path.resolve()
    private = private_files.find_private_project(project.path).make_agent(name)
    read = [_locate(project, path) for path in profile.read]
    read += [system_prompt] if system_prompt else []
    read += [str(project.workers[name])] if name in project.workers else []
    read += [str(mirror.resolve()) for mirror in project.mirrors]
    write = [_locate(project, path) for path in profile.write]
    workspace = find_workspace(project, name)
    if workspace is not None:
        # A clone reads the objects of the user's repository. A work tree also writes its branch
        # there, and so could change every other branch.
        git_folder = str(WorkingCopy(workspace.checkout.repository).common_folder)
        (write if workspace.checkout.kind == "worktree" else read).append(git_folder)
    top = str(workspace.folder) if workspace is not None else str(work)
    paths = SandboxPaths(
        folder=top,
        rekindle=str(root / agent_folder.REKINDLE_FOLDER),
        own=str(folder.path.resolve()),
        run=str(folder.run.resolve()),
        draft=str(folder.draft.parent.resolve()),
        relay=str(root / entry.relay) if entry.relay else "",
        user=str(user_folder.find_user_folder()),
        hooks=str(hook_program.find_hook_path().parent),
        scratch=str(private.launch),
        marks=str(private.marks),
        manifest=str(root / MANIFEST_FILE),
        protected=protected_paths.list_beside_work(project.path, work),
        secrets=project.floor.secrets if project.floor is not None else (),
        neighbours=tuple(
            str(find_agent_dir(project, other))
            for other in project.declared_agents
            if other != name
        ),
    )
    return AgentSandbox(
        msgspec.structs.replace(
            profile,
            write=tuple(path for path in write if not is_inside(path, top)),
            read=tuple(path for path in read if not is_inside(path, top)),
        ),
        paths,
    )


def check_sandbox(project: Project, name: str) -> None:
    """Refuse a sandbox that cannot be created on this host.

    Raises:
        ManifestError: A `sandbox:` path cannot be used, or `keep:` is set for a sandbox.
        SandboxError: bubblewrap or the OCI runtime is missing or does not work.
    """
    profile = find_profile(project, name)
    if profile is not None:
        check_paths(project, name)
        containment = containments.find_containment(is_container=profile.is_container)
        plan = containment.plan_limits(profile)
        probe.find_limits(plan.memory, plan.processes)


def ignores_cpu(project: Project, name: str) -> bool:
    """Return whether the agent's `cpu:` limit has no effect on this host."""
    profile = find_profile(project, name)
    if profile is None or profile.cpu is None:
        return False
    try:
        containment = containments.find_containment(is_container=profile.is_container)
    except SandboxError:  # `check_sandbox` explains it
        return False
    return containment.plan_limits(profile).ignores_cpu


def check_paths(project: Project, name: str) -> None:
    """Refuse paths that are missing, that a link could redirect, or that cannot be protected."""
    profile = find_profile(project, name)
    if profile is None:
        return
    if project.manifest.agents[name].keep:
        raise _make_error(
            project,
            name,
            "`keep:` has no effect in a sandbox, which ends with all its processes",
            f"remove `keep:`, or {_render_off(project)}",
        )
    if profile.is_container and project.manifest.agents[name].mode == "stay":
        raise _make_error(
            project,
            name,
            "a person cannot use a CLI in a container, which has no terminal",
            "write `sandbox: on`, or `mode: loop`",
        )
    own_services = [one for one in profile.network if is_on_this_host(one)]
    if project.floor is not None and own_services:
        words = f"`network: {to_one_line(own_services[0])}` of the sandbox is on the host itself"
        hint = "remove it from `sandbox:`, and use a service with an address on the network"
        raise _make_error(project, name, words, hint)
    workspace = find_workspace(project, name)
    # Another agent could replace a folder above `dir:` with a link to git's hooks.
    own = (project.manifest.agents[name].dir or AgentDefaults().dir,) if workspace is None else ()
    for key, paths in (("dir", own), ("write", profile.write), ("read", profile.read)):
        for path in paths:
            _check_path(project, name, key, path)
    if workspace is not None and workspace.checkout.kind == "worktree":
        git_folder = WorkingCopy(workspace.checkout.repository).common_folder
        if git_folder.name != GIT_FOLDER:
            words = f"a sandbox cannot protect the settings in {git_folder} for a work tree"
            raise _make_error(project, name, words, "use `workspace: clone`")


def _check_path(project: Project, name: str, key: str, path: str) -> None:
    located = _locate(project, path)
    is_own = is_inside(located, str(project.path.resolve()))
    if project.floor is not None and not is_own:
        words = f"`{key}: {to_one_line(path)}` of the sandbox is outside the agent's folder"
        hint = "move the files into the agent's folder, and remove the path from `sandbox:`"
        raise _make_error(project, name, words, hint)
    if key != "dir" and not Path(located).exists():
        words = f"`{key}: {to_one_line(path)}` of the sandbox does not exist"
        raise _make_error(project, name, words, "create it, or remove it from `sandbox:`")
    if (is_own or key != "read") and os.path.realpath(located) != located:
        words = f"`{key}: {to_one_line(path)}` of the sandbox leads through a link"
        raise _make_error(project, name, words, f"write {os.path.realpath(located)}")


def _locate(project: Project, path: str) -> str:
    """Return an absolute path. A relative path is resolved in the project."""
    return os.path.normpath(project.path.resolve() / Path(path).expanduser())


def _render_off(project: Project) -> str:
    """Tell the operator how to turn the sandbox off."""
    if project.floor is not None:
        return "start the host's worker with `--sandbox off`"
    return "write `sandbox: off`"


def _make_error(project: Project, name: str, words: str, hint: str) -> ManifestError:
    return ManifestError(
        f"agent {name}: {words}", line=project.marked.line(("agents", name, "sandbox")), hint=hint
    )
