"""Write resolved.jsonl: one line for each resolved loop, for tools that do not read the log.

The file is derived from the log. Each line has its event's number, so a writer can tell after a
crash which events the file already contains. Each brief rotates the file: the old file is named
after the number of the last event. Lines from other tools have no number and are read when the file
is rotated.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from rekindle.documents import events
from rekindle.documents.events import AnyEvent
from rekindle.documents.state import Resolution
from rekindle.errors import (
    DocumentError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.policy.setup.adoption import (
    ResolvedLine,
    parse_resolved_lines,
)
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system.files import durable_files, file_status

SCHEMA = 1
_PUT_AWAY = re.compile(r"(\d{8,18})(?:-(\d{1,9}))?\.jsonl\Z")


def append_resolutions(folder: AgentFolder, resolving: list[AnyEvent], newest: int) -> None:
    """Append the resolutions in these events, unless the file already has them."""
    if not resolving:
        return
    # A line whose number is higher than the last event's was not written by Rekindle.
    data = durable_files.read_bytes(folder.resolved) or b""
    written = [*map(_read_seq, data.splitlines()), *(number for number, _ in _list_rotated(folder))]
    done = max((number for number in written if number <= newest), default=0)
    lines = [
        json_codec.encode(
            {
                "id": item.id,
                "reason": item.reason,
                "ts": event.ts,
                "domain": folder.name,
                "v": SCHEMA,
                "seq": event.seq,
            },
            folder.resolved.name,
        )
        for event in resolving
        if event.seq > done
        for item in _list_resolved(event)
    ]
    if lines:
        durable_files.append_durably(folder.resolved, b"\n".join(lines) + b"\n")


def rotate_resolved(folder: AgentFolder, seq: int) -> None:
    """Rename the file after the last event's number, unless it is empty."""
    if not durable_files.read_bytes(folder.resolved, 1):
        return
    durable_files.refuse_link(folder.resolutions)
    durable_files.make_folder(folder.resolutions)
    # If an earlier brief failed after this step, a file with this number already exists.
    part = sum(number == seq for number, _ in _list_rotated(folder)) + 1
    to = _rotated_path(folder, seq, part)
    durable_files.rename_durably(folder.resolved, to)


def read_foreign_lines(folder: AgentFolder, since: int) -> tuple[list[ResolvedLine], bool]:
    """Return the resolutions that other tools wrote to files rotated since an event.

    The last file before the event is read again, because a tool may have had it open. The second
    value is True if any newer file has such lines.
    """
    files = _list_rotated(folder)
    reread = _read_rotated(folder, [file for file in files if file[0] <= since][-1:])
    new = _read_rotated(folder, [file for file in files if file[0] > since])
    return [*reread, *new], bool(new)


def _read_rotated(folder: AgentFolder, files: Iterable[tuple[int, int]]) -> list[ResolvedLine]:
    foreign: list[ResolvedLine] = []
    for number, part in files:
        path = _rotated_path(folder, number, part)
        lines = [
            line
            for line in (durable_files.read_bytes(path) or b"").splitlines()
            if not 0 < _read_seq(line) <= number
        ]
        resolved, _ = parse_resolved_lines(b"\n".join(lines))
        foreign += [
            ResolvedLine(
                resolution.id,
                resolution.reason,
                resolution.when or file_status.read_modified_time(path),
            )
            for resolution in resolved
        ]
    return foreign


def _rotated_path(folder: AgentFolder, number: int, part: int) -> Path:
    return folder.resolutions / f"{number:08d}{f'-{part}' if part > 1 else ''}.jsonl"


def _list_rotated(folder: AgentFolder) -> list[tuple[int, int]]:
    """Return the event number and part of each rotated file, in order."""
    with translate_os_errors(folder.resolutions):
        try:
            names = [entry.name for entry in os.scandir(folder.resolutions)]
        except FileNotFoundError:
            return []
    matched = filter(None, map(_PUT_AWAY.match, names))
    return sorted((int(groups[1]), int(groups[2] or 1)) for groups in matched)


def _read_seq(line: bytes) -> int:
    """Return the event number of a line, or 0 if another tool wrote it."""
    try:
        seq = json_codec.decode_object(line, "resolved.jsonl", schema=SCHEMA).get("seq")
    except DocumentError:
        return 0
    return seq if isinstance(seq, int) else 0


def _list_resolved(event: AnyEvent) -> tuple[Resolution, ...]:
    if isinstance(event, events.LoopResolved):
        return (Resolution(event.id, event.reason, ""),)
    return event.resolved if isinstance(event, events.StateAdopted) else ()
