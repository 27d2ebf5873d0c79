"""Create an agent from an exported file.

Nothing is written before the whole file has been checked. The agent's files are first written to a
folder next to the agents, which other commands ignore, and then renamed. If the import is killed
after that, a marker shows that it is not finished, and the same command finishes it.
"""

import os
import secrets
from hashlib import sha256
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.documents import manifest_edit
from rekindle.documents.agent_export import AGENT_PREFIX, SESSION_PREFIX, AgentExport, ExportHeader
from rekindle.documents.manifest import Permissions, parse
from rekindle.errors import OwnershipError
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.files import FileStore
from rekindle.stores.folders.agent_folder import AgentFolder, RekindleFolder
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log import log_acceptance
from rekindle.system import remove_folder
from rekindle.system.files import durable_files
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.keeping.moved_transcript import find_place, place_transcript, rename_folder
from rekindle.wiring.keeping.record_session import record_session
from rekindle.wiring.open_store import open_store

_MARKER = "importing"
_TEMPORARY = f"{durable_files.TEMPORARY_PREFIX}import-"


class ImportResult(msgspec.Struct, frozen=True):
    agent: str
    session: str
    is_entry_new: bool
    """Whether the agent was added to the manifest."""


def import_agent(folder: Path, export: AgentExport, data: bytes) -> ImportResult:
    """Create the agent in a project's folder, with its log, documents and session.

    Raises:
        OwnershipError: There is already an agent with this name.
    """
    header, stamp = export.header, sha256(data).hexdigest().encode()
    root = RekindleFolder(folder, find_private_project(folder))
    agent = root.agent(header.agent)
    _refuse_existing(agent, stamp)
    root.make()
    if not agent.exists():
        _write_folder(root, agent, export, stamp)
    is_entry_new = _add_entry(folder, header)
    project = config.load_project(folder)
    store = open_store(project)
    _seal(store, agent)
    work = find_agent_dir(project, header.agent).resolve()
    _place_session(store, export, work)
    durable_files.remove_file(agent.path / "run" / _MARKER)
    return ImportResult(header.agent, header.session, is_entry_new)


def _refuse_existing(agent: AgentFolder, stamp: bytes) -> None:
    has_private = agent.private is not None and durable_files.path_exists(agent.private.seal)
    if agent.exists():
        if durable_files.read_bytes(agent.path / "run" / _MARKER) == stamp:
            return  # an import of this file was interrupted
    elif not has_private:
        return
    raise OwnershipError(
        f"there is already an agent {agent.name} in this folder",
        hint="import it into another folder, or remove that agent's files first",
    )


def _write_folder(
    root: RekindleFolder, agent: AgentFolder, export: AgentExport, stamp: bytes
) -> None:
    for name in os.listdir(root.agents):  # noqa: PTH208 - only names are needed
        if name.startswith(_TEMPORARY):  # an earlier import was killed
            remove_folder.remove_folder(root.agents / name)
    target = AgentFolder(root.agents / f"{_TEMPORARY}{secrets.token_hex(8)}")
    made = {target.path}
    durable_files.make_folder(target.path)
    parts = {
        name.removeprefix(AGENT_PREFIX): data
        for name, data in export.parts.items()
        if name.startswith(AGENT_PREFIX)
    }
    for name, data in {**parts, f"run/{_MARKER}": stamp}.items():
        path = target.path / name
        for parent in reversed(path.relative_to(target.path).parents):
            if (target.path / parent) not in made:
                durable_files.make_folder(target.path / parent)
                made.add(target.path / parent)
        durable_files.replace_file(path, data)
    durable_files.rename_durably(target.path, agent.path)
    durable_files.sync_folder(agent.path)


def _seal(store: FileStore, agent: AgentFolder) -> None:
    """Accept the log, whose checksum is right, as the operator's own."""
    store.open_private(agent.name)
    if store.read(agent.name).is_tampered:
        log_acceptance.seal_log(store.folder(agent.name))
    store.create(agent.name)  # its other folders


def _place_session(store: FileStore, export: AgentExport, work: Path) -> None:
    """Put the transcript where the CLI looks for it, and record it as the session to continue."""
    header = export.header
    for name, data in export.parts.items():
        if not header.session or not name.startswith(SESSION_PREFIX):
            continue
        path = find_place(header.harness, work, name.removeprefix(SESSION_PREFIX))
        place_transcript(header.harness, work, path, rename_folder(data, header.folder, str(work)))
        known = store.read(header.agent).projection.lives.get(header.session)
        if known is None or known.transcript != str(path):
            record_session(
                store,
                header.agent,
                session=header.session,
                harness=header.harness,
                transcript=str(path),
                origin="import",
            )


def _add_entry(folder: Path, header: ExportHeader) -> bool:
    """Add the agent to the manifest, unless it is there. Return whether it was added."""
    entry = {key: value for key, value in header.entry.items() if key not in {"harness", "prompt"}}
    more = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in entry.items()]
    prompt = str(header.entry.get("prompt") or AgentDefaults().prompt)

    def add(text: str) -> str:
        if text.strip() and header.agent in parse(text).agents:
            return text
        added = (
            manifest_edit.add_agent_entry(text, header.agent, header.harness, prompt, more)
            if text.strip()
            else manifest_edit.compose(header.agent, header.harness, prompt, more)
        )
        if not header.persona:
            return added
        permissions = msgspec.convert(header.persona, Permissions)
        persona = str(header.entry.get("persona") or "default")
        words = "Imported with the agent."
        return manifest_edit.add_persona_entry(added, persona, permissions, words)

    before, after = config.rewrite_manifest(folder, add)
    return before != after
