"""Write an agent to one file, so that it can continue on another machine or in another folder."""

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from rekindle.config import Project
from rekindle.documents import agent_export
from rekindle.documents.agent_export import (
    AGENT_PREFIX,
    DRAFT_PART,
    SESSION_PREFIX,
    SNAPSHOT_PART,
    ExportedSnapshot,
    ExportHeader,
)
from rekindle.errors import SupervisedError, UsageError, WorkspaceError, translate_os_errors
from rekindle.flows.transcripts.transcript_files import read_lines
from rekindle.harnesses.session_files import SESSION_FILES
from rekindle.plugins import ALIASES
from rekindle.policy.exits.session_choice import ResumeSession, choose_session
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.used_personas import SUMMARIZER_PERSONA, find_agent_personas
from rekindle.policy.setup.environment import find_reference
from rekindle.policy.supervision.next_move import select_open_launches
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system import clock
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.keeping import find_sessions
from rekindle.wiring.keeping.moved_snapshot import pack_snapshot
from rekindle.wiring.keeping.moved_transcript import (
    is_transcript_of,
    read_large_file,
    redact_transcript,
)
from rekindle.wiring.open_store import find_harness

_REDACTED = frozenset({"ops.jsonl", "state.json"})
"""Files from which Rekindle removed secrets when it wrote them."""
_OWN_SECTIONS = frozenset({"version", "agents", "personas"})
"""Keys of the manifest that an export contains, as far as they are the agent's."""


class ExportResult(msgspec.Struct, frozen=True):
    data: bytes
    header: ExportHeader
    left_out: str
    """Why the file does not contain the agent's files; empty if it does."""
    shared: tuple[str, ...]
    """Keys in the manifest that apply to all agents, and are not in the file."""


def export_agent(
    project: Project, store: FileStore, name: str, *, with_files: bool
) -> ExportResult:
    """Return the file of an agent that is not running.

    Raises:
        SupervisedError: The agent is running.
        UsageError: A key of the agent contains a secret, or the agent works for a pipeline.
    """
    if store.is_supervised(name):
        raise SupervisedError(name)
    if name in project.workers:
        hint = "export the agents in rekindle.yaml, and start the pipeline again there"
        raise UsageError(f"{name} works for a pipeline run and cannot be moved alone", hint=hint)
    with store.writer(name) as writer:
        writer.fold()
        parts = _read_folder(writer.folder, store.redaction)
        session, harness, transcript = _find_session(project, name, writer.projection)
        snapshot, left_out = None, "the export is with --no-snapshot"
        if with_files:
            snapshot, left_out = _add_snapshot(project, name, writer.projection, parts)
    if transcript is not None:
        data = read_large_file(transcript) or b""
        parts[f"{SESSION_PREFIX}{transcript.name}"] = _redact_lines(data, store.redaction)
    entry, omitted = _read_entry(project, name)
    header = ExportHeader(
        agent=name,
        harness=harness,
        exported=clock.read_clock().isoformat(),
        folder=str(find_agent_dir(project, name)),
        entry=entry,
        personas=_read_personas(project, name),
        omitted=omitted,
        session=session,
        snapshot=snapshot,
    )
    _refuse_secrets(header, store.redaction)
    data = agent_export.render(header, parts)
    agent_export.parse(BytesIO(data), name)  # `rekindle import` would refuse it too late
    return ExportResult(data, header, left_out, _list_shared(project, header))


def _add_snapshot(
    project: Project, name: str, known: Projection, parts: dict[str, bytes]
) -> tuple[ExportedSnapshot | None, str]:
    """Add the agent's files to the parts. Return the snapshot, or None and why there is none."""
    try:
        snapshot, parts[SNAPSHOT_PART] = pack_snapshot(project, name, known)
    except WorkspaceError as error:
        return None, error.reason
    return snapshot, ""


def _read_entry(project: Project, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the agent's keys as they are in the manifest, and the variables that are left out."""
    entry = _to_plain(project.marked.data["agents"][name])
    if listed := entry.pop("harnesses", None):
        entry["harness"] = listed
    own = entry.pop("env", None) or {}
    # The name of a variable is not a secret itself.
    passed = {key: value for key, value in own.items() if find_reference(str(value))}
    if passed:
        entry["env"] = passed
    return entry, tuple(key for key in own if key not in passed)


def _read_personas(project: Project, name: str) -> dict[str, dict[str, Any]]:
    used = find_agent_personas(project.manifest.agents[name])
    declared = project.marked.data.get("personas") or {}
    return {persona: _to_plain(declared[persona] or {}) for persona in declared if persona in used}


def _list_shared(project: Project, header: ExportHeader) -> tuple[str, ...]:
    data = project.marked.data
    names = [key for key in data if key not in _OWN_SECTIONS and data[key]]
    if SUMMARIZER_PERSONA in project.manifest.personas.keys() - header.personas.keys():
        names.append(f"personas.{SUMMARIZER_PERSONA}")
    return tuple(names)


def _to_plain(keys: dict[str, Any]) -> dict[str, Any]:
    """Return a copy in which dates are texts."""
    copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(keys))
    return copy


def _refuse_secrets(header: ExportHeader, redaction: Redaction) -> None:
    """Refuse keys with secrets. Without them, the agent could do more than before."""
    places = {f"agents.{header.agent}.{key}": value for key, value in header.entry.items()}
    places |= {f"personas.{name}": keys for name, keys in header.personas.items()}
    for place, value in places.items():
        data = msgspec.json.encode({place.rpartition(".")[2]: value})
        if redaction.json(data) != data:
            raise UsageError(
                f"{place} in rekindle.yaml contains a secret, which an export never contains",
                hint="use an environment variable there, or list the text in `redact: allow:`",
            )


def _read_folder(folder: AgentFolder, redaction: Redaction) -> dict[str, bytes]:
    """Return the agent's files without secrets, and without those of this host."""
    parts: dict[str, bytes] = {}
    with translate_os_errors(folder.path):
        for above, folders, names in os.walk(folder.path):
            folders.sort()
            for name in sorted(names):
                path = Path(above) / name
                relative = path.relative_to(folder.path).as_posix()
                if agent_export.is_agent_file(relative) and not path.is_symlink():
                    data = read_large_file(path)
                    if data is not None:
                        parts[f"{AGENT_PREFIX}{relative}"] = _redact(path, data, redaction)
        draft = None if folder.draft.is_symlink() else read_large_file(folder.draft)
        if draft is not None:
            parts[DRAFT_PART] = _redact(folder.draft, draft, redaction)
    return parts


def _redact(path: Path, data: bytes, redaction: Redaction) -> bytes:
    if path.name in _REDACTED or path.suffix == ".gz":
        return data
    return _redact_lines(data, redaction) if path.suffix == ".jsonl" else redaction.data(data)


def _redact_lines(data: bytes, redaction: Redaction) -> bytes:
    return b"".join(redact_transcript(BytesIO(data), redaction))


def _find_session(project: Project, name: str, known: Projection) -> tuple[str, str, Path | None]:
    """Return the session that the agent's next launch would resume, its CLI and its transcript."""
    launches = select_open_launches(known)
    move = choose_session(launches)
    first = find_harness(project, name).NAME
    if not isinstance(move, ResumeSession):
        return "", first, None
    harness = ALIASES.get(launches[-1].harness, launches[-1].harness) or first
    if harness not in SESSION_FILES:
        return "", first, None
    folder = find_agent_dir(project, name)
    life = known.lives.get(move.session)
    found = [life.transcript] if life is not None and life.transcript else []
    found += [
        one.transcript
        for one in find_sessions.find_sessions(folder)
        if one.session == move.session and one.harness == harness
    ]
    for path in map(Path, found):
        if is_transcript_of(move.session, harness, str(folder), path.name, read_lines(str(path))):
            return move.session, harness, path
    return "", first, None
