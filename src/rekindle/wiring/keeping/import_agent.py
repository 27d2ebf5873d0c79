"""Create an agent from an exported file.

Nothing is written before the whole file, the manifest and the place of the session have been
checked. The agent's files are first written to a folder next to the agents, which other commands
ignore, and then renamed. If the import is killed after that, a marker keeps the agent from being
started, and the same command finishes it.
"""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.documents import events
from rekindle.documents.agent_export import (
    AGENT_PREFIX,
    DRAFT_PART,
    LOG_PART,
    SESSION_PREFIX,
    SNAPSHOT_PART,
    AgentExport,
)
from rekindle.documents.manifest import MANIFEST_FILE, AgentEntry
from rekindle.errors import DocumentError, ManifestError, NewerSchemaError, OwnershipError
from rekindle.harnesses.session_files import SESSION_FILES
from rekindle.plugins import ALIASES
from rekindle.policy.keeping.imported_personas import FittedSettings, add_agent, fit_settings
from rekindle.policy.keeping.imported_state import drop_decisions
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import AgentFolder, RekindleFolder
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log import log_acceptance, question_numbers
from rekindle.system import remove_folder
from rekindle.system.files import durable_files
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.keeping.moved_snapshot import (
    AddedSnapshot,
    add_snapshot,
    open_repository,
    unpack_snapshot,
)
from rekindle.wiring.keeping.moved_transcript import (
    find_place,
    is_place_free,
    is_transcript_of,
    place_transcript,
    rename_folder,
)
from rekindle.wiring.keeping.record_session import is_imported, record_session
from rekindle.wiring.open_store import HARNESSES, open_store

_TEMPORARY = f"{durable_files.TEMPORARY_PREFIX}import-"
_AGAIN = "export the agent again with `rekindle export`"


class SessionPlace(msgspec.Struct, frozen=True):
    """Where the transcript of the agent's session goes."""

    path: Path
    part: str
    is_free: bool
    """Whether it must be written. On the same machine, the CLI may have it already."""


class PlannedImport(msgspec.Struct, frozen=True):
    """An import that was checked, before anything is written."""

    folder: Path
    export: AgentExport
    stamp: bytes
    settings: FittedSettings | None
    """What will be added to the manifest; None if it has the agent."""
    undefined: tuple[str, ...]
    """Accounts of the agent that the manifest does not define."""
    work: Path
    """Folder in which the agent will work."""
    place: SessionPlace | None
    repository: WorkSnapshots | None
    """Repository for the agent's files; None if they are not imported."""


def plan_import(folder: Path, export: AgentExport, *, with_files: bool) -> PlannedImport:
    """Check that an agent can be created in a project's folder, without writing anything.

    Raises:
        OwnershipError: There is already an agent with this name.
        ManifestError: The agent's keys do not fit into the manifest.
        DocumentError: The session cannot continue.
        WorkspaceError: There is no repository for the agent's files.
    """
    header, stamp = export.header, export.digest.encode()
    _refuse_existing(_find_folder(folder, header.agent), stamp)
    has_manifest = durable_files.path_exists(folder / MANIFEST_FILE)
    before = config.read_manifest_text(folder) if has_manifest else ""
    project = config.make_project(folder, add_agent(before, header))
    entry = project.manifest.agents[header.agent]
    _check_log(export)
    _require_harnesses(header.agent, entry)
    work = find_agent_dir(project, header.agent)
    has_files = with_files and header.snapshot is not None
    return PlannedImport(
        folder,
        export,
        stamp,
        settings=fit_settings(before, header),
        undefined=tuple(
            name for name in entry.accounts or () if name not in project.manifest.accounts
        ),
        work=work,
        place=_find_session_place(project, entry, export, work) if header.session else None,
        repository=open_repository(project, header.agent) if has_files else None,
    )


def import_agent(planned: PlannedImport) -> AddedSnapshot | None:
    """Create the agent, with its log, documents, session and files.

    Return the snapshot with its files, or None if they are not imported.
    """
    folder, header = planned.folder, planned.export.header
    repository, snapshot, added = planned.repository, None, None
    if repository is not None and header.snapshot is not None:
        pack = planned.export.read_pieces(SNAPSHOT_PART)
        snapshot = unpack_snapshot(repository, header.snapshot, pack)
    agent = _find_folder(folder, header.agent)
    RekindleFolder(folder, find_private_project(folder)).make()
    if not agent.exists():
        _write_folder(agent, planned.export, planned.stamp)
    config.rewrite_manifest(folder, lambda text: add_agent(text, header))
    project = config.load_project(folder)
    store = open_store(project)
    _seal(store, agent)
    agent.archive_draft()  # it may be of another agent with this name
    if DRAFT_PART in planned.export.starts:
        durable_files.replace_file(agent.draft, planned.export.read_pieces(DRAFT_PART))
    if planned.place is not None:
        _place_session(store, planned, planned.place)
    if repository is not None and snapshot is not None:
        added = add_snapshot(project, repository, snapshot)
    durable_files.remove_file(agent.importing)
    return added


def _check_log(export: AgentExport) -> None:
    """Refuse a log from which no state can be computed.

    Raises:
        DocumentError: An event contains a state that this version does not understand.
    """
    try:
        fold_events(Projection(agent=export.header.agent), _read_events(export))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        reason = f"has an invalid log ({error})"
        raise DocumentError(f"agent {export.header.agent}", reason, hint=_AGAIN) from error


def _read_events(export: AgentExport) -> Iterator[events.AnyEvent | events.UnknownEvent]:
    for line in export.read_lines(LOG_PART):
        try:
            yield events.parse(line)
        except NewerSchemaError:
            raise
        except DocumentError:
            continue  # torn by a crash


def _find_folder(folder: Path, name: str) -> AgentFolder:
    return RekindleFolder(folder, find_private_project(folder)).agent(name)


def _refuse_existing(agent: AgentFolder, stamp: bytes) -> None:
    has_private = agent.private is not None and durable_files.path_exists(agent.private.seal)
    if agent.exists():
        if durable_files.read_bytes(agent.importing) == stamp:
            return  # an import of this file was interrupted
    elif not has_private:
        return
    raise OwnershipError(
        f"there is already an agent {agent.name} in this folder",
        hint="import it into another folder, or remove that agent's files first",
    )


def _list_harnesses(entry: AgentEntry) -> list[str]:
    names = [item.use for item in entry.harnesses or ()] or [entry.harness]
    return [ALIASES.get(name, name) for name in names]


def _require_harnesses(name: str, entry: AgentEntry) -> None:
    for harness in _list_harnesses(entry):
        if harness not in HARNESSES:
            raise ManifestError(
                f"agent {name}: there is no harness named {harness!r} here",
                hint=f"install its plugin, or use one of: {HARNESSES.list_names()}",
            )


def _find_session_place(
    project: Project, entry: AgentEntry, export: AgentExport, work: Path
) -> SessionPlace:
    header = export.header
    (part,) = (name for name in export.starts if name.startswith(SESSION_PREFIX))
    name = part.removeprefix(SESSION_PREFIX)
    harness = header.harness
    if harness not in SESSION_FILES or not is_transcript_of(
        header.session, harness, header.folder, name, export.read_lines(part)
    ):
        reason = f"has a session that {harness!r} cannot continue"
        raise DocumentError(f"agent {header.agent}", reason, hint=_AGAIN)
    if harness not in _list_harnesses(entry):
        raise ManifestError(
            f"agent {header.agent} has another harness than its session, which is of {harness}",
            hint=f"add {harness} to its `harness:`, or remove its entry from {MANIFEST_FILE}",
        )
    path = find_place(harness, work, name)
    moved = rename_folder(export.read_lines(part), header.folder, str(work))
    redaction = Redaction(tuple(project.manifest.redact.allow))
    is_free = is_place_free(path, moved, export.read_lines(part), redaction)
    return SessionPlace(path, part, is_free)


def _write_folder(agent: AgentFolder, export: AgentExport, stamp: bytes) -> None:
    agents = agent.path.parent
    for name in os.listdir(agents):  # noqa: PTH208 - only names are needed
        if name.startswith(_TEMPORARY):  # an earlier import was killed
            remove_folder.remove_folder(agents / name)
    target = AgentFolder(agents / f"{_TEMPORARY}{secrets.token_hex(8)}")
    made = {target.path}
    durable_files.make_folder(target.path)
    files: dict[str, bytes | Iterator[bytes]] = {
        name.removeprefix(AGENT_PREFIX): export.read_pieces(name)
        for name in export.starts
        if name.startswith(AGENT_PREFIX)
    }
    files[f"run/{agent.importing.name}"] = stamp
    for name, data in files.items():
        path = target.path / name
        for parent in reversed(path.relative_to(target.path).parents):
            if (target.path / parent) not in made:
                durable_files.make_folder(target.path / parent)
                made.add(target.path / parent)
        durable_files.replace_file(path, data)
    durable_files.rename_durably(target.path, agent.path)
    durable_files.sync_folder(agent.path)


def _seal(store: FileStore, agent: AgentFolder) -> None:
    """Accept the log, which the operator confirmed, but none of the decisions in it."""
    store.open_private(agent.name)
    folder = store.folder(agent.name)
    if store.read(agent.name).is_tampered:
        log_acceptance.seal_log(folder)
    store.create(agent.name)  # its other folders
    with store.writer(agent.name) as writer:
        question_numbers.keep_accepted(folder, writer.projection)
        known = drop_decisions(writer.projection, writer.now())
        plain = msgspec.to_builtins(known, str_keys=True)
        writer.append(events.AgentReceived(ts=writer.now(), known=plain))
        writer.project()


def _place_session(store: FileStore, planned: PlannedImport, place: SessionPlace) -> None:
    """Put the transcript where the CLI looks for it, and record it as the session to continue."""
    header = planned.export.header
    if place.is_free:
        lines = planned.export.read_lines(place.part)
        moved = rename_folder(lines, header.folder, str(planned.work))
        place_transcript(header.harness, planned.work, place.path, moved)
    known = store.read(header.agent).projection
    life = known.lives.get(header.session)
    if life is None or life.transcript != str(place.path) or not is_imported(known):
        record_session(
            store,
            header.agent,
            session=header.session,
            harness=header.harness,
            transcript=str(place.path),
            origin="import",
        )
