"""Write an agent to one file, so that it can continue on another machine or in another folder."""

import os
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.documents import agent_export
from rekindle.documents.agent_export import AGENT_PREFIX, SESSION_PREFIX, ExportHeader
from rekindle.errors import SupervisedError, translate_os_errors
from rekindle.harnesses.session_files import SESSION_FILES
from rekindle.policy.exits.session_choice import ResumeSession, choose_session
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.next_move import select_open_launches
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.keeping import find_sessions
from rekindle.wiring.keeping.moved_transcript import redact_transcript
from rekindle.wiring.open_store import find_harness


class ExportResult(msgspec.Struct, frozen=True):
    data: bytes
    session: str
    """Session that continues after the import; empty if the next session is a fresh one."""
    files: int


def export_agent(project: Project, store: FileStore, name: str) -> ExportResult:
    """Return the file of an agent that is not running.

    Raises:
        SupervisedError: The agent is running.
    """
    if store.is_supervised(name):
        raise SupervisedError(name)
    entry = project.manifest.agents[name]
    persona = project.manifest.personas.get(entry.persona or "default")
    with store.writer(name) as writer:
        writer.fold()
        parts = _read_folder(writer.folder)
        session, transcript = _find_session(project, name, writer.projection)
    if transcript is not None:
        data = durable_files.read_bytes(transcript) or b""
        parts[f"{SESSION_PREFIX}{transcript.name}"] = redact_transcript(data, store.redaction)
    header = ExportHeader(
        agent=name,
        harness=find_harness(project, name).NAME,
        exported=clock.read_clock().isoformat(),
        folder=str(find_agent_dir(project, name)),
        entry=_read_keys(entry, store),
        persona=_read_keys(persona.permissions, store) if persona and persona.permissions else {},
        session=session if transcript is not None else "",
    )
    return ExportResult(agent_export.render(header, parts), header.session, len(parts))


def _read_keys(value: object, store: FileStore) -> dict[str, object]:
    """Return the keys that are set in a part of the manifest, without secrets."""
    keys = {key: item for key, item in msgspec.to_builtins(value).items() if item is not None}
    cleaned: dict[str, object] = msgspec.json.decode(
        store.redaction.json(msgspec.json.encode(keys))
    )
    return cleaned


def _read_folder(folder: AgentFolder) -> dict[str, bytes]:
    """Return the agent's files, without those of this host."""
    parts: dict[str, bytes] = {}
    with translate_os_errors(folder.path):
        for above, folders, names in os.walk(folder.path):
            folders.sort()
            for name in sorted(names):
                path = Path(above) / name
                relative = path.relative_to(folder.path).as_posix()
                if agent_export.is_agent_file(relative) and not path.is_symlink():
                    data = durable_files.read_bytes(path)
                    if data is not None:
                        parts[f"{AGENT_PREFIX}{relative}"] = data
    return parts


def _find_session(project: Project, name: str, known: Projection) -> tuple[str, Path | None]:
    """Return the session that the agent's next launch would resume, with its transcript."""
    move = choose_session(select_open_launches(known))
    harness = find_harness(project, name).NAME
    if not isinstance(move, ResumeSession) or harness not in SESSION_FILES:
        return "", None
    life = known.lives.get(move.session)
    if life is not None and life.transcript and Path(life.transcript).is_file():
        return move.session, Path(life.transcript)
    folder = find_agent_dir(project, name).resolve()
    for found in find_sessions.find_sessions(folder):
        if found.session == move.session and found.harness == harness:
            return move.session, Path(found.transcript)
    return "", None
