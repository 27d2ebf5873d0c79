"""resolved.jsonl: every resolution, a line each, for tools that know no log.

It is made from the log. Its lines carry the number of their event, so that whoever comes after a
crash can tell how far it is.
"""

from collections.abc import Iterable

from rekindle.documents import event as events
from rekindle.documents import jsontext
from rekindle.documents.event import AnyEvent, Unrecognised
from rekindle.documents.state import Resolution
from rekindle.errors import DocumentError
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

SCHEMA = 1


def among(happened: Iterable[AnyEvent | Unrecognised]) -> list[AnyEvent]:
    """The events that resolve something."""
    return [
        event
        for event in happened
        if isinstance(event, events.LoopResolved)
        or (isinstance(event, events.StateAdopted) and event.resolved)
    ]


def append(folder: AgentFolder, resolving: list[AnyEvent], newest: int) -> None:
    """Append what these events resolve, as far as the file does not hold it yet."""
    if not resolving:
        return
    done = _last_seq(disk.read(folder.resolved) or b"", newest)
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
