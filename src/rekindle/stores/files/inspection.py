"""Inspection: what is wrong with an agent's folder, and the command that mends it.

It only looks. Whatever a writer mends by itself is mended by `rekindle doctor --fix`, and by every
other command that writes.
"""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import msgspec

from rekindle.documents import jsontext, state
from rekindle.documents.event import Unrecognised
from rekindle.documents.identity import one_line
from rekindle.errors import (
    DocumentError,
    ForgedCommandError,
    NewerSchemaError,
    RekindleError,
    TamperedLogError,
    storing,
)
from rekindle.policy.fold import Loss, Standing
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files import log, ownership, view
from rekindle.stores.files.inbox import Harnesses, Record
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.seal import Place
from rekindle.stores.files.view import View
from rekindle.system import disk

_FIX = "rekindle doctor --fix"


class Problem(msgspec.Struct, frozen=True):
    what: str
    mend: str
    is_note: bool = False
    """Worth knowing, but nothing is broken."""


def inspect(
    folder: AgentFolder, host: str, harnesses: Harnesses, redaction: Redaction
) -> list[Problem]:
    if not folder.exists():
        return [Problem("nothing kept yet", "it begins with the first command", is_note=True)]
    # First: most of these keep everything else from being read.
    if misplaced := list(_misplaced(folder)):
        return misplaced
    try:
        return _inspect(folder, host, harnesses, redaction)
    except RekindleError as error:
        return [Problem(str(error), error.hint or _FIX)]


def _inspect(
    folder: AgentFolder, host: str, harnesses: Harnesses, redaction: Redaction
) -> list[Problem]:
    seen = view.read(folder, harnesses, redaction)
    return [
        *_owner(folder, host),
        *_modes(folder),
        *_log(folder, seen, harnesses),
        *_documents(folder, seen),
        *_state(folder),
        *_leftovers(folder),
    ]


def _misplaced(folder: AgentFolder) -> Iterator[Problem]:
    """Report folders, links, FIFOs and sockets in the place of files, and files of folders."""
    for expected, paths in (
        ("folder", (*folder.folders, folder.resolutions)),
        ("file", folder.files),
    ):
        for path in paths:
            kind = disk.kind_of(path)
            if kind not in {"", expected}:
                away = quote(f"{path}.away")
                yield Problem(
                    f"{path}: is a {kind}, not a {expected}",
                    f"move it away: mv {quote(str(path))} {away}",
                )


def _owner(folder: AgentFolder, host: str) -> Iterator[Problem]:
    try:
        owner = ownership.read(folder)
    except DocumentError as error:
        yield Problem(str(error), error.hint)
        return
    if owner and owner.host.startswith(ownership.FLEET):
        told = ownership.foreign(folder.name, owner.host)
        yield Problem(str(told), told.hint, is_note=True)
    elif owner and owner.host != host:
        yield Problem(
            f"belongs to host {owner.host}, this is {host}",
            "if that host no longer works on it: rekindle doctor --fix --take-over",
        )


def _modes(folder: AgentFolder) -> Iterator[Problem]:
    documents = [folder.document(name) for name in ("relay", "checkpoint", "brief")]
    for path in (*folder.folders, folder.log, folder.state, *documents):
        if not disk.exists(path):
            continue
        with storing(path):
            mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            wanted = "700" if path in folder.folders else "600"
            yield Problem(f"other users can read {path}", f"chmod {wanted} {quote(str(path))}")


def _log(folder: AgentFolder, seen: View, harnesses: Harnesses) -> Iterator[Problem]:
    if seen.is_tampered:
        error = TamperedLogError(folder.name, seen.condition)
        yield Problem(error.reason, error.hint)
        return
    try:
        view.require_whole_log(folder, seen.committed.seq)
    except DocumentError as error:
        yield Problem(str(error), error.hint)
    bad: list[log.BadLine] = []
    losses: list[Loss] = []
    place = Place()
    # From the beginning: the snapshot hides what is damaged before it.
    for batch in log.read_batches(folder.log, chain=""):
        bad += batch.bad
        losses += batch.losses
        place = Place(batch.end, batch.chain)
    if folder.private and place.end == seen.end and place.chain != seen.chain:
        yield Problem(
            "ops.jsonl was changed before its last snapshot; what counts is not affected",
            "restore it from a backup, or leave it",
        )
    if skipped := [one for one in bad if not one.is_damaged]:
        first = skipped[0]
        yield Problem(
            f"lines of ops.jsonl that count for nothing: {len(skipped)}, the first at byte"
            f" {first.offset}: {first.reason}",
            "nobody acknowledged them, and they are skipped; nothing to do",
            is_note=True,
        )
    yield from _losses(folder, seen, [one for one in bad if one.is_damaged], losses)
    forged = sum(_is_forged(record, harnesses) for record in seen.pending)
    if forged:
        yield Problem(
            f"commands in the workspace's inbox that only the operator can give: {forged}; they"
            " count for nothing",
            "look at what the agent did: it, or a program it started, wrote them",
        )
    if any(_is_newer(record, harnesses) for record in seen.pending):
        yield Problem(
            "the inbox holds a record of a newer Rekindle", "pip install --upgrade rekindle-agents"
        )
    elif seen.pending:
        yield Problem(f"records of the inbox that are not folded yet: {len(seen.pending)}", _FIX)


def _losses(
    folder: AgentFolder, seen: View, damaged: Sequence[log.BadLine], losses: Sequence[Loss]
) -> Iterator[Problem]:
    """Report damaged lines and gaps in the numbers of the log."""
    numbers = ", ".join(
        f"{loss.after + 1}"
        if loss.before == loss.after + 2
        else f"{loss.after + 1} to {loss.before - 1}"
        for loss in losses
        if loss.before
    )
    if damaged:
        first = damaged[0]
        yield Problem(
            f"damaged lines of ops.jsonl: {len(damaged)}, the first at byte {first.offset}:"
            f" {first.reason}",
            _after_loss(folder, seen),
            is_note=not seen.committed.may_miss_stop,
        )
    if numbers:
        yield Problem(
            f"ops.jsonl has lost events: {one_line(numbers)}",
            _after_loss(folder, seen),
            is_note=not seen.committed.may_miss_stop,
        )


def _after_loss(folder: AgentFolder, seen: View) -> str:
    if not seen.committed.may_miss_stop:
        return "what they said is lost, unless a backup of ops.jsonl has it"
    return (
        "restore ops.jsonl from a backup. A stop may be lost: watch and daemon do not start the"
        f" agent until you say `rekindle run {folder.name}` or `rekindle stop {folder.name}`"
    )


def _is_newer(record: Record, harnesses: Harnesses) -> bool:
    """Return whether a record of the operator waits for a newer Rekindle."""
    if not record.is_operators:
        return False  # of the workspace: set aside by the next fold
    try:
        return isinstance(record.event(harnesses), Unrecognised)
    except NewerSchemaError:
        return True
    except DocumentError:
        return False


def _is_forged(record: Record, harnesses: Harnesses) -> bool:
    try:
        record.event(harnesses)
    except ForgedCommandError:
        return True
    except DocumentError:
        return False
    return False


def _documents(folder: AgentFolder, seen: View) -> Iterator[Problem]:
    for name in ("relay", "checkpoint", "brief"):
        standing = seen.committed.documents.get(name)
        condition = condition_of(folder, name, standing)
        if condition == "edited":
            yield Problem(
                f"{folder.document(name)} was edited; it will be taken over", _FIX, is_note=True
            )
        elif condition in {"missing", "behind"}:
            yield Problem(f"{folder.document(name)} is {condition}", _FIX)
        if standing and not _archive_holds(folder, standing):
            yield Problem(
                f"the archive's copy of the {name} is missing or changed: {standing.path}",
                f"restore it from a backup, or set the {name} again",
            )


def condition_of(folder: AgentFolder, name: str, standing: Standing | None) -> str:
    """How a document stands to its last commit: none, clean, behind, missing or edited."""
    data = disk.read(folder.document(name))
    if data is None:
        return "missing" if standing else "none"
    if standing is None:
        return "edited"
    found = jsontext.fingerprint(data)
    if found == standing.sha256:  # first: a relay set twice is its own previous
        return "clean"
    return "behind" if found == standing.previous else "edited"


def is_edited(data: bytes) -> bool:
    """Whether somebody else wrote these bytes of state.json."""
    try:
        return not state.is_ours(data)
    except DocumentError:
        return True


def _archive_holds(folder: AgentFolder, standing: Standing) -> bool:
    kept = disk.read(folder.path / standing.path)
    return kept is not None and jsontext.fingerprint(kept) == standing.sha256


def _state(folder: AgentFolder) -> Iterator[Problem]:
    data = disk.read(folder.state)
    if data is None:
        yield Problem("state.json is missing", _FIX)
        return
    try:
        if not state.is_ours(data):
            state.parse(data)
            yield Problem(
                "state.json was edited; what was added will be taken over", _FIX, is_note=True
            )
    except RekindleError as error:
        yield Problem(str(error), error.hint or _FIX)


def _leftovers(folder: AgentFolder) -> Iterator[Problem]:
    for place in (folder.path, folder.memories):
        with storing(place):
            found = sorted(place.iterdir())
        for path in found:
            if path.name.endswith(".rejected"):
                yield Problem(
                    f"an edit could not be used and was set aside: {path}",
                    f"take from it what you need, then: rm {quote(str(path))}",
                    is_note=True,
                )
            elif _is_temporary(path):
                yield Problem(f"a killed writer left {path.name}", _FIX)


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(disk.TEMPORARY_PREFIX)
