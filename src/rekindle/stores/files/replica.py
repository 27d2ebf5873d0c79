"""Receive an agent from another host, so that this host can continue its work."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents import events
from rekindle.errors import BusyError
from rekindle.formats import json_codec
from rekindle.policy.fleet import agent_registry
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    log_acceptance,
    snapshot,
)
from rekindle.system.files import durable_files, file_locks


def receive_agent(
    folder: AgentFolder, projection: Projection, documents: Mapping[str, bytes], now: datetime
) -> None:
    """Replace the folder's content with a received agent.

    The earlier copy's log is moved to the archive. Its edits are dropped, because this host had
    already lost the agent. If the process is killed halfway, the copy does not match any known
    state and is received again.
    """
    folder.make()
    with file_locks.hold_lock(folder.lock, STOP_SECONDS) as lock:
        if lock is None:
            raise BusyError(folder.name, STOP_SECONDS)
        previous = _read_known(folder)
        # Remove these first, so that a partial copy does not look complete.
        for path in (folder.snapshot, folder.state):
            durable_files.remove_file(path)
        if durable_files.path_exists(folder.log):
            moved = folder.archive / f"ops-before-{projection.seq:08d}-{projection.gen}.jsonl"
            durable_files.rename_durably(folder.log, moved)
        for name, data in documents.items():
            # Use only the file name: the sender must not choose paths on this host.
            durable_files.replace_file(folder.archive / Path(name).name, data)
        for name in ("relay", "checkpoint", "brief"):
            _place_document(folder, name, projection, documents)
        _place_draft(folder, projection, documents, previous)
        plain = msgspec.to_builtins(prune_projection(projection), str_keys=True)
        line = events.AgentReceived(ts=now, seq=projection.seq, gen=projection.gen, known=plain)
        event_log.append_lines(folder.log, [events.render(line)])
        log_acceptance.seal_log(folder)


def _read_known(folder: AgentFolder) -> Projection:
    last_snapshot = snapshot.load_snapshot(folder)
    return fold_events(
        last_snapshot.projection,
        event_log.read_log(folder.log, last_snapshot.offset, last_snapshot.projection.gen).events,
    )


def _place_draft(
    folder: AgentFolder,
    projection: Projection,
    documents: Mapping[str, bytes],
    previous: Projection,
) -> None:
    """Write the open cycle's draft, as received from the previous host.

    A local draft is kept only if it belongs to the same cycle.
    """
    received = (
        documents.get(agent_registry.make_draft_name(projection.cycle))
        if projection.is_cycle_open
        else None
    )
    is_same_cycle = (
        projection.is_cycle_open and previous.is_cycle_open and previous.cycle == projection.cycle
    )
    if received is not None:
        durable_files.replace_file(folder.draft, received)
    elif not is_same_cycle:
        folder.archive_draft()


def _place_document(
    folder: AgentFolder, name: str, projection: Projection, documents: Mapping[str, bytes]
) -> None:
    """Write the file that readers use for a document, or remove it if there is none."""
    last_commit = projection.documents.get(name)
    data = documents.get(last_commit.path) if last_commit else None
    if last_commit is not None and data and json_codec.hash_bytes(data) == last_commit.sha256:
        durable_files.replace_file(folder.document(name), data)
    else:
        durable_files.remove_file(folder.document(name))
