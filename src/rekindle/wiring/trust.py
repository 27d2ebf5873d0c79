"""Whether this user trusts a project's folder here, and which settings the operator accepted."""

from collections.abc import Sequence
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents.manifest import FILE
from rekindle.errors import UnacceptedError, UntrustedError
from rekindle.policy import consent
from rekindle.policy.consent import Change, Controlled
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import AgentDefaults
from rekindle.stores import private, trust
from rekindle.stores.files.layout import Root
from rekindle.system import clock, disk

UNKNOWN = "no settings were accepted for it on this host"
_CHANGED = "changed without your command"


def has_anything_to_trust(folder: Path) -> bool:
    """Return whether a folder brings a manifest or state of its own."""
    return (folder / FILE).exists() or Root(folder).path.exists()


def is_trusted(folder: Path) -> bool:
    return trust.is_trusted(private.of_project(folder), clock.now())


def list_trusted() -> list[Path]:
    """Return the folders that the user trusts on this host: the register of all projects."""
    return trust.list_trusted(clock.now())


def require_trust(folder: Path) -> None:
    """Refuse to work in a folder that the user has not accepted.

    Raises:
        UntrustedError: It was not accepted, or another folder is at its path now.
    """
    if not is_trusted(folder):
        raise UntrustedError(private.render_path(folder))


def accept_folder(folder: Path) -> None:
    """Record that the user trusts a folder as it is now, with all agents of its manifest.

    Raises:
        ManifestError: Its manifest cannot be read.
    """
    if (folder / FILE).exists():
        accept_project(config.load(folder))
    else:
        trust.record_trust(private.of_project(folder), clock.now())


def accept_project(project: Project) -> None:
    """Record that the user trusts a project's folder, and its settings as they were read."""
    trust.record_trust(private.of_project(project.path), clock.now())
    accept_fleet(project)
    for name in project.manifest.agents:
        _accept_agent(project, name)


def forget_folder(folder: Path) -> None:
    """Remove everything that is recorded for a folder on this host."""
    private.of_project(folder).remove()


def controlled(project: Project, name: str) -> Controlled:
    """Return the settings of an agent that need the operator's consent."""
    return consent.select_controlled(project.manifest, name, _paths_outside(project, name))


def accept_settings(project: Project, name: str) -> list[str]:
    """Record the agent's settings as accepted; return what was not accepted before.

    The fleet is among them: it is the project's, and counts for every agent.
    """
    had_fleet = has_lost_fleet(project)
    changes = [_redacted(project, change.render()) for change in _accept_agent(project, name)]
    changes += accept_fleet(project)
    if had_fleet:
        changes.append(
            f"no `fleet:` any more; the fleet may still run {name}: to end it there, put `fleet:`"
            f" back and use `rekindle fleet remove {name}`"
        )
    return changes


def _accept_agent(project: Project, name: str) -> list[Change]:
    """Record the agent's settings as accepted; return what changed beside the fleet."""
    record = private.of_project(project.path).make_agent(name).settings
    before, after = trust.read_settings(record), controlled(project, name)
    if before != after:
        trust.record_settings(record, after, clock.now())
    return consent.compare(consent.without_fleet(before or {}), consent.without_fleet(after))


def accept_fleet(project: Project) -> list[str]:
    """Record the manifest's fleet as accepted; return what was not accepted before."""
    changes = _find_fleet_changes(project)
    if changes:
        own = private.of_project(project.path)
        own.make()
        trust.record_settings(own.fleet, _fleet_of(project), clock.now())
    return [_redacted(project, change.render()) for change in changes]


def require_fleet(project: Project) -> None:
    """Refuse to connect to a fleet that the operator has not accepted.

    Its address, and the variable whose value is sent there, could be an agent's.

    Raises:
        UntrustedError: The folder was not accepted.
        UnacceptedError: The fleet differs from the accepted one.
    """
    require_trust(project.path)
    if changes := _find_fleet_changes(project):
        raise UnacceptedError(
            "`fleet:`",
            f"{_CHANGED}: {_redacted(project, consent.render_changes(changes))}",
            "`rekindle run NAME`, `rekindle restart NAME`, `rekindle fleet import NAME` or"
            " `rekindle fleet worker --trust` accepts it",
        )


def has_lost_fleet(project: Project) -> bool:
    """Return whether the manifest names no fleet any more, though the operator accepted one."""
    if project.settings.fleet is not None:
        return False
    return bool(trust.read_settings(private.of_project(project.path).fleet))


def require_no_lost_fleet(project: Project, agents: Sequence[str]) -> None:
    """Refuse to take agents for stopped that an accepted fleet may run.

    Raises:
        UnacceptedError: The manifest does not name that fleet any more.
    """
    if not agents or not has_lost_fleet(project):
        return
    changes = _redacted(project, consent.render_changes(_find_fleet_changes(project)))
    raise UnacceptedError(
        "`fleet:`",
        f"{_CHANGED}: {changes}; the fleet may still run {', '.join(agents)}",
        "put `fleet:` back and repeat the command; if `rekindle fleet remove` has ended its agents,"
        " `rekindle run NAME` accepts the change",
    )


def _find_fleet_changes(project: Project) -> list[Change]:
    accepted = trust.read_settings(private.of_project(project.path).fleet)
    return consent.compare(accepted or {}, _fleet_of(project))


def _fleet_of(project: Project) -> Controlled:
    return consent.select_fleet(consent.select_controlled(project.manifest, ""))


def find_changes(project: Project, name: str) -> list[Change]:
    """Return how the settings differ from the accepted ones; none if none were ever accepted."""
    before = _accepted(project, name)
    return [] if before is None else consent.compare(before, controlled(project, name))


def is_unknown(project: Project, name: str) -> bool:
    """Return whether no settings of the agent were ever accepted in this trusted folder."""
    return _accepted(project, name) is None and is_trusted(project.path)


def explain_unaccepted(project: Project, name: str) -> str:
    """Return why a supervisor must not start anything; empty if the settings were accepted."""
    if _accepted(project, name) is None:
        return UNKNOWN
    changes = find_changes(project, name)
    if not changes:
        return ""
    shown = _redacted(project, consent.render_changes(changes))
    return f"{FILE} {_CHANGED}: {shown}"


def stamp_settings(project: Project, name: str) -> object:
    """Return a value that changes if `explain_unaccepted` may give another answer.

    It costs a few calls of `stat`. It does not replace the comparison before a launch.
    """
    accepted = private.of_project(project.path).agent(name).settings
    return disk.stamp(project.path / FILE), disk.stamp(accepted), _paths_outside(project, name)


def require_accepted(project: Project, name: str) -> None:
    """Refuse to start a program of the manifest that the operator has not accepted.

    Raises:
        UntrustedError: The folder was not accepted.
        UnacceptedError: The settings differ from the accepted ones, or none were accepted.
    """
    require_trust(project.path)
    if reason := explain_unaccepted(project, name):
        raise UnacceptedError(
            f"agent {name}",
            reason.removeprefix(f"{FILE} "),
            f"`rekindle restart {name}` accepts it, or `rekindle hooks install -a {name}` if you"
            " start its sessions yourself",
        )


def is_accepted_dir(project: Project, name: str, folder: Path) -> bool:
    """Return whether an agent's `dir:` is in the project, or the operator accepted this folder."""
    if folder.is_relative_to(project.path.resolve()):
        return True
    return (_accepted(project, name) or {}).get(f"agents.{name}.dir") == private.render_path(folder)


def accepted_notify(project: Project, name: str) -> list[str]:
    """Return the addresses that the operator accepted: an agent may have added its own."""
    return list((_accepted(project, name) or {}).get("notify", []))


def _accepted(project: Project, name: str) -> Controlled | None:
    return trust.read_settings(private.of_project(project.path).agent(name).settings)


def _redacted(project: Project, text: str) -> str:
    return Redaction(tuple(project.manifest.redact.allow)).text(text)


def _paths_outside(project: Project, name: str) -> dict[str, str]:
    """Return the keys of an agent and of personas that lead outside the project, links followed."""
    entry, defaults = project.manifest.agents[name], AgentDefaults()
    root = project.path.resolve()
    named = {
        f"agents.{name}.dir": entry.dir or defaults.dir,
        f"agents.{name}.prompt": entry.prompt or defaults.prompt,
        f"agents.{name}.rules": entry.rules,
    }
    for persona, settings in project.manifest.personas.items():
        named[f"personas.{persona}.system_prompt_file"] = settings.system_prompt_file
    found = {key: (root / path).resolve() for key, path in named.items() if path}
    return {
        key: private.render_path(path)
        for key, path in found.items()
        if not path.is_relative_to(root)
    }
