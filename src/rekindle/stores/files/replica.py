"""An agent's folder where somebody else keeps the log: a copy, from which the next host goes on."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents import event as events
from rekindle.documents import jsontext
from rekindle.errors import BusyError
from rekindle.policy import register
from rekindle.policy.fold import Projection, fold, pruned
from rekindle.policy.settings import STOP_SECONDS
from rekindle.stores.files import acceptance, log, snapshot
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk


def receive(
    folder: AgentFolder, known: Projection, documents: Mapping[str, bytes], now: datetime
) -> None:
    """Make a folder hold what is known elsewhere; the log goes on behind it.

    What stood here is a copy of an earlier time. Its lines are kept beside the archive, what was
    edited in it is not: whoever had it was told that it had lost the agent. Killed in between, it
    fits nothing, and is received again.
    """
    folder.make()
    with disk.locked(folder.lock, STOP_SECONDS) as lock:
        if lock is None:
            raise BusyError(folder.name, STOP_SECONDS)
        was = _known_before(folder)
        # First, so that nobody takes the rest of it for a copy that fits.
        for path in (folder.snapshot, folder.state):
            disk.remove(path)
        if disk.exists(folder.log):
            kept = folder.archive / f"ops-before-{known.seq:08d}-{known.gen}.jsonl"
            disk.set_aside(folder.log, kept)
        for name, data in documents.items():
            # By its name alone: whoever sent it says nothing of other places on this host.
            disk.replace(folder.archive / Path(name).name, data)
        for name in ("relay", "checkpoint", "brief"):
            _stand(folder, name, known, documents)
        _lay_out_draft(folder, known, documents, was)
        plain = msgspec.to_builtins(pruned(known), str_keys=True)
        line = events.AgentReceived(ts=now, seq=known.seq, gen=known.gen, known=plain)
        log.append(folder.log, [events.render(line)])
        acceptance.reseal(folder)


def _known_before(folder: AgentFolder) -> Projection:
    kept = snapshot.load(folder)
    return fold(kept.projection, log.read(folder.log, kept.offset, kept.projection.gen).events)


def _lay_out_draft(
    folder: AgentFolder, known: Projection, documents: Mapping[str, bytes], was: Projection
) -> None:
    """What was written for the next cycle where this one was worked on: here it may be ended.

    What lies here already counts where it is of the same cycle; one of another time does not.
    """
    found = documents.get(register.draft(known.cycle)) if known.is_cycle_open else None
    is_of_now = known.is_cycle_open and was.is_cycle_open and was.cycle == known.cycle
    if found is not None:
        disk.replace(folder.draft, found)
    elif not is_of_now:
        folder.put_draft_away()


def _stand(
    folder: AgentFolder, name: str, known: Projection, documents: Mapping[str, bytes]
) -> None:
    """Put what readers see in its place: the document in force, or none."""
    standing = known.documents.get(name)
    data = documents.get(standing.path) if standing else None
    if standing is not None and data and jsontext.fingerprint(data) == standing.sha256:
        disk.replace(folder.document(name), data)
    else:
        disk.remove(folder.document(name))
