"""Build an agent's definition from a project folder, and publish its workspace."""

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path, PurePath

from rekindle.config import Project, read_manifest_text
from rekindle.documents.commits.work_commit import make_work_ref, strip_user
from rekindle.documents.events import AnyEvent, WorkspacePushed
from rekindle.documents.manifest import AgentEntry
from rekindle.errors import ManifestError
from rekindle.fleet.hosts.host_folder import require_relative
from rekindle.fleet.hosts.work_branch import WorkBranch, find_remote
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.handoff import window_rule
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import notify_addresses
from rekindle.policy.settings.fleet_settings import list_engine_files
from rekindle.policy.settings.runtime_settings import AgentDefaults, FleetSettings
from rekindle.policy.supervision.next_move import AgentLimits
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import clock, host
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.open_store import read_named_file


def define_agent(project: Project, fleet: FleetSettings, name: str) -> AgentDefinition:
    """Return everything that a host needs to run an agent, since hosts do not read the project."""
    entry = project.manifest.agents[name]
    if entry.mode == "stay":
        raise ManifestError(
            f"agent {name}: `mode: stay` needs a person at a terminal, which does not exist on a "
            "fleet",
            line=project.marked.line(("agents", name, "mode")),
            hint="omit `mode:`, or run the agent on your own host, in a project without `fleet:`",
        )
    return _define(project, fleet, entry)


def define_shared(project: Project, fleet: FleetSettings) -> AgentDefinition:
    """Return the definition that all workers of a pipeline share, without any agent's settings."""
    return _define(project, fleet, None)


def _define(project: Project, fleet: FleetSettings, entry: AgentEntry | None) -> AgentDefinition:
    _require_no_secrets(project)
    folder = AgentDefaults().dir if entry is None or not entry.dir else entry.dir
    remote = find_remote(project.path / folder)
    handover = entry.handover if entry else None
    return AgentDefinition(
        manifest=read_manifest_text(project.path),
        files=_redact_files(project, _read_files(project, entry)),
        limits=AgentLimits(
            runtime=project.settings.runtime,
            budget=entry.budget if entry else None,
            threshold=window_rule.find_threshold(handover, project.settings.runtime.relay),
        ),
        pool=fleet.pool,
        team=fleet.team,
        heartbeat_seconds=float(fleet.heartbeat_timeout),
        remote=strip_user(remote.url) if remote else "",
        within=remote.path if remote else "",
        notifies=bool(project.manifest.notify),
        project=project.path.name,
    )


def publish_workspace(
    project: Project, fleet: FleetSettings, name: str, generation: int, say: Callable[[str], None]
) -> list[AnyEvent]:
    """Push the agent's current folder for the first host, and return the events to record.

    Without this push, the first host would start from the last commit that a person pushed.
    """
    folder = find_agent_dir(project, name)
    remote = find_remote(folder)
    if remote is None:
        return []
    top = folder.parents[len(PurePath(remote.path).parts) - 1] if remote.path else folder
    workspace = WorkBranch(
        top, remote=remote.url, agent=name, generation=generation, host=host.identify_host()
    )
    keys = ((project.path / file).resolve() for file in list_engine_files(fleet))
    pushed = workspace.publish(
        [str(key.relative_to(top)) for key in keys if key.is_relative_to(top)]
    )
    count = workspace.uncommitted
    which = f", {count} of them not committed," if count else ""
    branch = make_work_ref(name).removeprefix("refs/heads/")
    say(f"pushed the files of {name}{which} to the branch {branch}")
    return [
        WorkspacePushed(
            ts=clock.read_clock(), revision=pushed.revision, head=pushed.head, branch=pushed.branch
        )
    ]


def _require_no_secrets(project: Project) -> None:
    """Raise ManifestError if the manifest contains a secret, because the engine would store it."""
    for number, address in enumerate(project.manifest.notify):
        if not notify_addresses.has_only_variables(address):
            raise ManifestError(
                f"address {number + 1} of `notify:` may contain a secret, which the engine would "
                "store",
                line=project.marked.line(("notify", number)),
                hint="put the address into a variable on each host of the fleet, and use its name: "
                "`notify: [$ALERTS]`",
            )
    before = read_manifest_text(project.path).splitlines()
    after = make_redaction(project).text("\n".join(before)).split("\n")
    for number, (line, cleaned) in enumerate(zip_longest(before, after), 1):
        if line != cleaned:
            raise ManifestError(
                "this line may contain a secret, which the engine would store",
                line=number,
                hint="put it into a variable on each host of the fleet, and use its name, as in "
                "`env: {API_TOKEN: $API_TOKEN}`; add it to `redact: allow:` if it is not "
                "secret",
            )


def find_files_with_secrets(project: Project, name: str) -> list[str]:
    """Return the files from which secrets are removed before hosts get them."""
    texts = _read_files(project, project.manifest.agents[name])
    return [file for file, text in _redact_files(project, texts).items() if texts[file] != text]


def _redact_files(project: Project, texts: dict[str, str]) -> dict[str, str]:
    return {file: make_redaction(project).text(text) for file, text in texts.items()}


def make_redaction(project: Project) -> Redaction:
    return Redaction(tuple(project.manifest.redact.allow))


def _read_files(project: Project, entry: AgentEntry | None) -> dict[str, str]:
    personas = (persona.system_prompt_file for persona in project.manifest.personas.values())
    named = {
        "prompt": (entry.prompt or AgentDefaults().prompt) if entry else None,
        "rules": entry.rules if entry else None,
        **{f"personas {number}": file for number, file in enumerate(personas)},
    }
    files = {}
    for key, file in named.items():
        if file:
            files[str(require_relative(file))] = read_named_file(project, file, key)
    own = RekindleFolder(project.path).summarizer
    if own.is_file():
        files[str(own.relative_to(project.path))] = read_named_file(
            project, str(Path(own).relative_to(project.path)), "summarizer"
        )
    return files
