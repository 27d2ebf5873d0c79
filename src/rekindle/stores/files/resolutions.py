"""resolved.jsonl: every resolution, a line each, for tools that know no log.

It is made from the log. Its lines carry the number of their event, so that whoever comes after a
crash can tell how far it is. When a brief is written it is put away, by a rename, under the number
of the event up to which it tells; lines of other tools in it have no number, and are told then.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from rekindle.documents import event as events
from rekindle.documents import jsontext
from rekindle.documents.event import AnyEvent
from rekindle.documents.state import Resolution
from rekindle.errors import DocumentError, storing
from rekindle.policy.adoption import Closing, closings_in
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

SCHEMA = 1
_PUT_AWAY = re.compile(r"(\d{8,18})(?:-(\d{1,9}))?\.jsonl\Z")


def append(folder: AgentFolder, resolving: list[AnyEvent], newest: int) -> None:
    """Append what these events resolve, as far as the file does not hold it yet."""
    if not resolving:
        return
    here = _last_seq(disk.read(folder.resolved) or b"", newest)
    done = max(here, *(number for number, _ in _put_away(folder) if number <= newest), 0)
    lines = [
        jsontext.encode(
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
        for item in _resolved_by(event)
    ]
    if lines:
        disk.append(folder.resolved, b"\n".join(lines) + b"\n")


def put_away(folder: AgentFolder, seq: int) -> None:
    """Rename the file, which tells of all that is resolved up to an event; an empty one stays."""
    if not disk.read(folder.resolved, 1):
        return
    disk.refuse_link(folder.resolutions)
    disk.make_folder(folder.resolutions)
    # After a brief of which no event came there is one of this number already.
    part = sum(number == seq for number, _ in _put_away(folder)) + 1
    to = _path(folder, seq, part)
    disk.set_aside(folder.resolved, to)


def of_others(folder: AgentFolder, told: int) -> tuple[list[Closing], bool]:
    """What lines of other tools resolve, in the files that were put away since an event.

    The last one before it is read again: a tool that had it open may have written to it since. And
    whether there are any in those that came after it.
    """
    files = _put_away(folder)
    again = _read(folder, [one for one in files if one[0] <= told][-1:])
    new = _read(folder, [one for one in files if one[0] > told])
    return [*again, *new], bool(new)


def _read(folder: AgentFolder, files: Iterable[tuple[int, int]]) -> list[Closing]:
    found: list[Closing] = []
    for number, part in files:
        path = _path(folder, number, part)
        lines = [
            line for line in (disk.read(path) or b"").splitlines() if not _is_ours(line, number)
        ]
        said, _ = closings_in(b"\n".join(lines))
        found += [Closing(one.id, one.reason, one.when or disk.modified(path)) for one in said]
    return found


def _path(folder: AgentFolder, number: int, part: int) -> Path:
    return folder.resolutions / f"{number:08d}{f'-{part}' if part > 1 else ''}.jsonl"


def _put_away(folder: AgentFolder) -> list[tuple[int, int]]:
    """The numbers of the files that were put away, lowest first, and which of that number."""
    with storing(folder.resolutions):
        try:
            names = [entry.name for entry in os.scandir(folder.resolutions)]
        except FileNotFoundError:
            return []
    matched = filter(None, map(_PUT_AWAY.match, names))
    return sorted((int(found[1]), int(found[2] or 1)) for found in matched)


def _is_ours(line: bytes, newest: int) -> bool:
    try:
        seq = jsontext.decode_object(line, "resolved.jsonl", schema=SCHEMA).get("seq")
    except DocumentError:
        return False
    return isinstance(seq, int) and 0 < seq <= newest


def _resolved_by(event: AnyEvent) -> tuple[Resolution, ...]:
    if isinstance(event, events.LoopResolved):
        return (Resolution(event.id, event.reason, ""),)
    return event.resolved if isinstance(event, events.StateAdopted) else ()


def _last_seq(data: bytes, newest: int) -> int:
    """The highest number in the file; lines that other tools appended have none, or a wrong one."""
    highest = 0
    for line in data.splitlines():
        try:
            seq = jsontext.decode_object(line, "resolved.jsonl", schema=SCHEMA).get("seq")
        except DocumentError:
            continue
        if isinstance(seq, int) and seq <= newest:
            highest = max(highest, seq)
    return highest
