"""Find and read rekindle.yaml."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents import manifest
from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.documents.manifest import (
    MANIFEST_FILE,
    AgentEntry,
    Manifest,
)
from rekindle.errors import (
    DocumentError,
    ManifestError,
    ManifestMissingError,
    OversizedError,
    UnknownAgentError,
    UnknownPipelineError,
    UnsafePathError,
    translate_os_errors,
)
from rekindle.formats.yaml_lines import MarkedData
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings import metrics_check, runtime_settings
from rekindle.policy.settings.metrics_settings import MetricsSettings
from rekindle.policy.settings.runtime_settings import (
    EDIT_LOCK_SECONDS,
    Settings,
)
from rekindle.stores.folders import private_files
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import clock
from rekindle.system.files import durable_files, file_locks, user_folder
from rekindle.system.processes import program_search


class Project(msgspec.Struct, frozen=True):
    """A folder with a manifest, and the parsed manifest."""

    path: Path
    manifest: Manifest
    marked: MarkedData
    settings: Settings
    workers: Mapping[str, Path] = {}
    """Agents that work for pipeline runs, each with its run's output folder.

    They are in `manifest`, but not in rekindle.yaml.
    """
    mirrors: tuple[Path, ...] = ()
    """Git folders of a fleet host whose objects the agents' clones read."""
    floor: SandboxFloor | None = None
    """The weakest sandbox that this fleet host permits; None if the agent's own key decides."""
    credentials: HostCredentials | None = None
    """How launches on this host of a fleet get credentials; None if it is not a host."""

    @property
    def declared_agents(self) -> list[str]:
        """Return the agents that are in rekindle.yaml."""
        return [name for name in self.manifest.agents if name not in self.workers]

    @property
    def declared_manifest(self) -> Manifest:
        """Return the manifest without the workers of pipeline runs."""
        agents = {name: self.manifest.agents[name] for name in self.declared_agents}
        return msgspec.structs.replace(self.manifest, agents=agents)

    def require_agent(self, name: str) -> str:
        if name not in self.manifest.agents:
            raise UnknownAgentError(name, self.declared_agents)
        return name

    def require_pipeline(self, name: str) -> str:
        if name not in self.manifest.pipelines:
            raise UnknownPipelineError(name, self.manifest.pipelines)
        return name


def find_project(start: Path) -> Path | None:
    """Return the nearest folder with a manifest: `start` or one above it.

    In an agent's own clone, this is the project and not the clone's copy of the manifest. If a
    plugin records a folder's sessions, its manifest is outside the folder.
    """
    if project := private_files.find_workspace_project(start):
        return project
    for folder in (start, *start.parents):
        with translate_os_errors(folder / MANIFEST_FILE):
            if (folder / MANIFEST_FILE).exists() or has_private_manifest(folder):
                return folder
    return None


def has_private_manifest(folder: Path) -> bool:
    """Return whether a plugin records the sessions in a folder without rekindle.yaml."""
    with translate_os_errors(folder):
        return RekindleFolder(folder).path.is_dir() and (
            private_files.find_private_project(folder).manifest.exists()
        )


def load_project(start: Path) -> Project:
    folder = find_project(start)
    if folder is None:
        raise ManifestMissingError(str(start))
    return make_project(folder, read_manifest_text(folder))


def make_project(folder: Path, text: str) -> Project:
    """Return a project in a folder, with a manifest that need not be there."""
    parsed, marked = manifest.read_manifest(text)
    _require_pipelines(parsed, marked)
    resolved = runtime_settings.resolve_settings(marked)
    _require_zone(resolved.runtime.brief.zone, marked)
    _require_schedules(parsed, marked)
    if resolved.runtime.metrics != MetricsSettings():
        metrics_check.require_valid_metrics(
            resolved.runtime.metrics, marked, ("runtime", "metrics")
        )
    if resolved.fleet is not None:
        from rekindle.policy.fleet import connection_check  # noqa: PLC0415 - slows every start

        connection_check.require_valid_fleet(resolved.fleet, marked)
    program_search.exclude_folders(folder, user_folder.find_workspaces_folder())
    entries, outputs = _find_workers(folder)
    joined = msgspec.structs.replace(parsed, agents={**entries, **parsed.agents})
    workers = {name: path for name, path in outputs.items() if name not in parsed.agents}
    return Project(folder, joined, marked, resolved, workers)


def _find_workers(folder: Path) -> tuple[dict[str, AgentEntry], dict[str, Path]]:
    """Return the agents of all pipeline runs, and the output folder of each agent's run."""
    entries: dict[str, AgentEntry] = {}
    outputs: dict[str, Path] = {}
    private = private_files.find_private_project(folder)
    if not private.pipelines.exists():
        return entries, outputs
    from rekindle.stores.pipelines import run_folder  # noqa: PLC0415 - slows every start

    for run in run_folder.list_runs(private):
        with suppress(DocumentError):  # `rekindle pipeline status` reports it
            workers = run.read_workers()
            entries |= {name: record.entry for name, record in workers.items()}
            outputs |= dict.fromkeys(workers, run.outputs)
    return entries, outputs


def _require_pipelines(parsed: Manifest, marked: MarkedData) -> None:
    if parsed.pipelines:
        from rekindle.policy.pipelines import pipeline_checks  # noqa: PLC0415 - slows every start

        pipeline_checks.require_valid_pipelines(parsed, marked)


def _require_schedules(parsed: Manifest, marked: MarkedData) -> None:
    keys = [entry.every for entry in parsed.agents.values()]
    keys += [pipeline.every for pipeline in parsed.pipelines.values()]
    if any(every is not None for every in keys):
        from rekindle.policy.schedules import schedule_checks  # noqa: PLC0415 - slows every start

        schedule_checks.require_valid_schedules(parsed, marked, clock.find_zone)


def _require_zone(name: str, marked: MarkedData) -> None:
    try:
        if name:
            clock.find_zone(name)
    except LookupError as error:
        raise ManifestError(
            f"there is no time zone {name!r}",
            line=marked.line(("runtime", "brief", "zone")),
            hint="use a name such as Europe/Zurich, or leave `zone` out for this machine's",
        ) from error


def list_agents(folder: Path) -> list[str]:
    """Return the agents in a folder's manifest, or none if there is no manifest."""
    text = read_manifest_text(folder) if (folder / MANIFEST_FILE).exists() else ""
    return list(manifest.parse(text).agents) if text.strip() else []


def read_manifest_text(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    with translate_os_errors(path):
        is_private = not path.exists() and has_private_manifest(folder)
    if is_private:
        path = private_files.find_private_project(folder).manifest
    try:
        data = durable_files.read_user_file(path, runtime_settings.MANIFEST_BYTES)
    except (OversizedError, UnsafePathError) as error:
        raise ManifestError(error.reason, hint=error.hint) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"is not UTF-8 text (byte {error.start})") from error


def rewrite_manifest(folder: Path, change: Callable[[str], str]) -> tuple[str, str]:
    """Change the manifest's text under a lock. Return the text before and after.

    Without the lock, two `init` commands could overwrite each other's changes.
    """
    root = RekindleFolder(folder)
    root.make()
    # If the manifest is a symbolic link, change its target.
    path = (folder / MANIFEST_FILE).resolve()
    with file_locks.hold_lock(root.path / "lock", EDIT_LOCK_SECONDS) as lock:
        if lock is None:
            raise ManifestError("another process is changing it", hint="repeat the command")
        durable_files.sweep_temporary(path.parent, of=path.name)
        before = read_manifest_text(folder) if path.exists() else ""
        after = change(before)
        _require_pipelines(*manifest.read_manifest(after))  # never write an invalid manifest
        if after != before:
            with translate_os_errors(path):
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
            durable_files.replace_file(path, after.encode(), mode=mode)
    return before, after
