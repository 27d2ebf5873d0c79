"""Check whether the user trusts a project's folder and has accepted its settings."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE, Manifest
from rekindle.documents.manifest_pipelines import PromptFile
from rekindle.errors import StoreError, UnacceptedError, UntrustedError, translate_os_errors
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import consent, used_personas
from rekindle.policy.settings.consent import (
    ControlledSettings,
    SettingChange,
)
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.folders import (
    private_files,
    trust_records,
)
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import clock
from rekindle.system.files import durable_files, file_status

NEVER_ACCEPTED = "its settings have never been accepted on this host"
_CHANGED = "changed without a command from you"


def has_anything_to_trust(folder: Path) -> bool:
    """Return whether a folder has a manifest, or a .rekindle folder that a plugin did not create.

    A plugin's manifest is outside the folder. A link counts even if its target does not exist yet.
    """
    if durable_files.path_exists(folder / MANIFEST_FILE):
        return True
    own = RekindleFolder(folder).path
    return durable_files.path_exists(own) and not config.has_private_manifest(folder)


def is_trusted(folder: Path) -> bool:
    """Return whether the user trusts a folder.

    If a plugin set it up and a rekindle.yaml came later, for instance from git, the user has not
    accepted that manifest yet.
    """
    own = private_files.find_private_project(folder)
    with translate_os_errors(folder / MANIFEST_FILE):
        if own.manifest.exists() and (folder / MANIFEST_FILE).exists():
            return False
    return trust_records.is_trusted(own, clock.read_clock())


def list_trusted() -> list[Path]:
    """Return the folders that the user trusts on this host, without those that were replaced."""
    folders = []
    for folder in trust_records.list_recorded():
        with suppress(StoreError):  # the folder is gone, or its disk is not mounted
            if is_trusted(folder):
                folders.append(folder)
    return folders


def require_trust(folder: Path) -> None:
    """Refuse to work in a folder that the user has not accepted.

    Raises:
        UntrustedError: The folder was not accepted, or has since been replaced by another one.
    """
    if not is_trusted(folder):
        raise UntrustedError(private_files.render_path(folder))


def accept_folder(folder: Path) -> None:
    """Record that the user trusts a folder as it is now, with all agents in its manifest.

    Raises:
        ManifestError: The manifest cannot be read.
    """
    if (folder / MANIFEST_FILE).exists():
        accept_project(config.load_project(folder))
    else:
        own = private_files.find_private_project(folder)
        trust_records.remove_replaced(own, clock.read_clock())
        trust_records.record_trust(own, clock.read_clock())


def accept_project(project: Project) -> None:
    """Record that the user trusts a project folder and accepts its settings as read.

    The trust is recorded last, so that a command started in the meantime does not find a trusted
    folder whose settings are not accepted yet.
    """
    own = private_files.find_private_project(project.path)
    trust_records.remove_replaced(own, clock.read_clock())
    accept_fleet(project)
    for name in project.declared_agents:
        _accept_agent(project, name)
    for name in project.manifest.pipelines:
        accept_pipeline(project, name)
    if durable_files.path_exists(project.path / MANIFEST_FILE):
        durable_files.remove_file(own.manifest)  # the user's own manifest replaces it
    trust_records.record_trust(own, clock.read_clock())


def forget_folder(folder: Path) -> None:
    """Remove all of this host's records of a folder."""
    private_files.find_private_project(folder).remove()


def find_controlled(project: Project, name: str) -> ControlledSettings:
    """Return the agent's settings that need the operator's consent."""
    outside = _find_paths_outside(project, name)
    return consent.select_controlled(_select_manifest(project, name), name, outside)


def _select_manifest(project: Project, name: str) -> Manifest:
    """Return the manifest; for a worker, only with the personas that it uses.

    A new persona for another purpose must not interrupt a pipeline run.
    """
    if name not in project.workers:
        return project.manifest
    entry = project.manifest.agents[name]
    return used_personas.keep_personas(project.manifest, used_personas.find_worker_personas(entry))


def accept_settings(project: Project, name: str) -> list[str]:
    """Accept the agent's settings, and return the changes since they were last accepted.

    The fleet belongs to the project, so its settings are accepted along with any agent's.
    """
    had_fleet = has_lost_fleet(project)
    changes = [_redact_text(project, change.render()) for change in _accept_agent(project, name)]
    changes += accept_fleet(project)
    if had_fleet:
        changes.append(
            f"`fleet:` was removed; the fleet may still run {name}: to stop it there, put `fleet:` "
            f"back and use `rekindle fleet remove {name}`"
        )
    return changes


def _accept_agent(project: Project, name: str) -> list[SettingChange]:
    """Accept the agent's settings, but not the fleet's, and return the changes."""
    record = private_files.find_private_project(project.path).make_agent(name).settings
    before, after = trust_records.read_settings(record), find_controlled(project, name)
    if before != after:
        trust_records.record_settings(record, after, clock.read_clock())
    changes = consent.compare_settings(
        consent.drop_fleet_settings(before or {}), consent.drop_fleet_settings(after)
    )
    return _redact_changes(project, changes)


def find_pipeline_settings(project: Project, name: str) -> ControlledSettings:
    """Return the pipeline's settings that need the operator's consent."""
    paths = _find_pipeline_paths_outside(project, name)
    return consent.select_pipeline(project.declared_manifest, name, paths)


def accept_pipeline(project: Project, name: str) -> list[str]:
    """Accept the pipeline's settings, and return the changes since they were last accepted."""
    own = private_files.find_private_project(project.path)
    record = own.pipeline_settings(name)
    before, after = trust_records.read_settings(record), find_pipeline_settings(project, name)
    if before != after:
        own.make_pipeline(name)
        trust_records.record_settings(record, after, clock.read_clock())
    changes = _redact_changes(project, consent.compare_settings(before or {}, after))
    return [_redact_text(project, change.render()) for change in changes]


def explain_unaccepted_pipeline(project: Project, name: str) -> str:
    """Return why a run of the pipeline must not start, or "" if its settings are accepted."""
    own = private_files.find_private_project(project.path)
    before = trust_records.read_settings(own.pipeline_settings(name))
    if before is None:
        return NEVER_ACCEPTED
    changes = consent.compare_settings(before, find_pipeline_settings(project, name))
    return _explain_changes(project, _redact_changes(project, changes))


def accept_fleet(project: Project) -> list[str]:
    """Accept the manifest's fleet, and return the changes since it was last accepted."""
    changes = _find_fleet_changes(project)
    if changes:
        own = private_files.find_private_project(project.path)
        own.make()
        trust_records.record_settings(own.fleet, _find_fleet(project), clock.read_clock())
    return [_redact_text(project, change.render()) for change in changes]


def require_fleet(project: Project) -> None:
    """Refuse to connect to a fleet that the operator has not accepted.

    An agent could have changed the fleet's address, or the variable whose value is sent to that
    address.

    Raises:
        UntrustedError: The folder was not accepted.
        UnacceptedError: The fleet differs from the accepted one.
    """
    require_trust(project.path)
    if changes := _find_fleet_changes(project):
        raise UnacceptedError(
            "`fleet:`",
            f"{_CHANGED}: {_redact_text(project, consent.render_changes(changes))}",
            "`rekindle run NAME`, `rekindle restart NAME`, `rekindle fleet import NAME` or"
            " `rekindle fleet worker --trust` accepts it",
        )


def has_lost_fleet(project: Project) -> bool:
    """Return whether the manifest no longer names the fleet that the operator accepted."""
    if project.settings.fleet is not None:
        return False
    return bool(trust_records.read_settings(private_files.find_private_project(project.path).fleet))


def require_no_lost_fleet(project: Project, agents: Sequence[str]) -> None:
    """Refuse to report agents as stopped if an accepted fleet may still be running them.

    Raises:
        UnacceptedError: The manifest no longer names the accepted fleet.
    """
    if not agents or not has_lost_fleet(project):
        return
    changes = _redact_text(project, consent.render_changes(_find_fleet_changes(project)))
    raise UnacceptedError(
        "`fleet:`",
        f"{_CHANGED}: {changes}; the fleet may still be running {', '.join(agents)}",
        "put `fleet:` back and repeat the command; if `rekindle fleet remove` has removed its "
        "agents, `rekindle run NAME` accepts the change",
    )


def _find_fleet_changes(project: Project) -> list[SettingChange]:
    accepted = trust_records.read_settings(private_files.find_private_project(project.path).fleet)
    return _redact_changes(project, consent.compare_settings(accepted or {}, _find_fleet(project)))


def _find_fleet(project: Project) -> ControlledSettings:
    return consent.select_fleet(consent.select_controlled(project.manifest, ""))


def find_changes(project: Project, name: str) -> list[SettingChange]:
    """Return how the settings differ from the accepted ones; empty if none were accepted."""
    before = _read_accepted(project, name)
    if before is None:
        return []
    changes = consent.compare_settings(before, find_controlled(project, name))
    return _redact_changes(project, changes)


def _redact_changes(project: Project, changes: list[SettingChange]) -> list[SettingChange]:
    """Redact whole values, because part of a secret may not look like one."""
    return [
        SettingChange(
            change.key, _redact_text(project, change.before), _redact_text(project, change.after)
        )
        for change in changes
    ]


def is_unknown(project: Project, name: str) -> bool:
    """Return whether the folder is trusted, but the agent's settings were never accepted."""
    return _read_accepted(project, name) is None and is_trusted(project.path)


def explain_unaccepted(project: Project, name: str) -> str:
    """Return why a supervisor must not start the agent, or "" if its settings are accepted."""
    if _read_accepted(project, name) is None:
        return NEVER_ACCEPTED
    return _explain_changes(project, find_changes(project, name))


def _explain_changes(project: Project, changes: Sequence[SettingChange]) -> str:
    if not changes:
        return ""
    shown = _redact_text(project, consent.render_changes(changes))
    return f"{MANIFEST_FILE} {_CHANGED}: {shown}"


def stamp_settings(project: Project, name: str) -> object:
    """Return a value that changes whenever the result of `explain_unaccepted` may change.

    It needs only a few `stat` calls, but does not replace the check before a launch.
    """
    accepted = private_files.find_private_project(project.path).agent(name).settings
    return (
        file_status.make_file_stamp(project.path / MANIFEST_FILE),
        file_status.make_file_stamp(accepted),
        _find_paths_outside(project, name),
    )


def require_accepted(project: Project, name: str) -> None:
    """Refuse to start a program from the manifest that the operator has not accepted.

    Raises:
        UntrustedError: The folder was not accepted.
        UnacceptedError: The settings differ from the accepted ones, or none were accepted.
    """
    require_trust(project.path)
    if reason := explain_unaccepted(project, name):
        raise UnacceptedError(
            f"agent {name}",
            reason.removeprefix(f"{MANIFEST_FILE} "),
            f"`rekindle restart {name}` accepts it, or `rekindle hooks install -a {name}` if you"
            " start its sessions yourself",
        )


def has_moved(project: Project, name: str) -> bool:
    """Return whether an agent's `dir:` differs from the accepted one."""
    return any(change.key == f"agents.{name}.dir" for change in find_changes(project, name))


def is_accepted_dir(project: Project, name: str, folder: Path) -> bool:
    """Return whether an agent's `dir:` is in the project or was accepted."""
    if folder.is_relative_to(project.path.resolve()):
        return True
    return (_read_accepted(project, name) or {}).get(
        f"agents.{name}.dir"
    ) == private_files.render_path(folder)


def find_accepted_notify(project: Project, name: str) -> list[str]:
    """Return the accepted `notify:` addresses. An agent may have added its own to the manifest."""
    return list((_read_accepted(project, name) or {}).get("notify", []))


def _read_accepted(project: Project, name: str) -> ControlledSettings | None:
    return trust_records.read_settings(
        private_files.find_private_project(project.path).agent(name).settings
    )


def _redact_text(project: Project, text: str) -> str:
    return Redaction(tuple(project.manifest.redact.allow)).text(text)


def _find_paths_outside(project: Project, name: str) -> dict[str, str]:
    """Return the paths outside the project that the manifest names for an agent, by key."""
    entry, defaults = project.manifest.agents[name], AgentDefaults()
    root = project.path.resolve()
    named: dict[str, str | None] = {
        f"agents.{name}.dir": entry.dir or defaults.dir,
        f"agents.{name}.prompt": entry.prompt or defaults.prompt,
        f"agents.{name}.rules": entry.rules,
    }
    return _select_outside(root, named | _name_persona_files(_select_manifest(project, name)))


def _find_pipeline_paths_outside(project: Project, name: str) -> dict[str, str]:
    """Return a pipeline's manifest paths that lead outside the project, by key.

    The manifest's own check refuses such paths, but a path in the project may be a symbolic link.
    """
    pipeline, start = project.manifest.pipelines[name], f"pipelines.{name}"
    named: dict[str, str | None] = {f"{start}.copy: {file}": file for file in pipeline.copy or ()}
    for step in pipeline.steps:
        place = f"{start}.steps.{step.id}"
        if isinstance(step.prompt, PromptFile):
            named[f"{place}.prompt.file"] = step.prompt.file
        for number, contract in enumerate(step.contracts):
            named[f"{place}.handover.contract.{number}.schema_path"] = contract.schema_path
    personas = used_personas.find_pipeline_personas(pipeline)
    files = _name_persona_files(used_personas.keep_personas(project.manifest, personas))
    return _select_outside(project.path.resolve(), named | files)


def _name_persona_files(manifest: Manifest) -> dict[str, str | None]:
    return {
        f"personas.{name}.system_prompt_file": persona.system_prompt_file
        for name, persona in manifest.personas.items()
    }


def _select_outside(root: Path, named: Mapping[str, str | None]) -> dict[str, str]:
    """Return the paths that are outside the folder after resolving links, by key."""
    resolved = {key: (root / path).resolve() for key, path in named.items() if path}
    return {
        key: private_files.render_path(path)
        for key, path in resolved.items()
        if not path.is_relative_to(root)
    }
