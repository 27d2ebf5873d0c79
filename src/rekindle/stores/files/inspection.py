"""Inspection: what is wrong with an agent's folder, and the command that mends it.

It only looks. Whatever a writer mends by itself is mended by `rekindle doctor --fix`, and by every
other command that writes.
"""

import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rekindle.documents import jsontext, state
from rekindle.errors import DocumentError, RekindleError
from rekindle.policy.fold import Standing
from rekindle.stores.files import ownership, view
from rekindle.stores.files.inbox import Harnesses
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.view import View
from rekindle.system import disk

_FIX = "rekindle doctor --fix"


class Problem(msgspec.Struct, frozen=True):
    what: str
    mend: str
    is_note: bool = False
    """Worth knowing, but nothing is broken."""


def inspect(folder: AgentFolder, host: str, harnesses: Harnesses) -> list[Problem]:
    if not folder.exists():
        return [Problem("nothing kept yet", "it begins with the first command", is_note=True)]
    try:
        seen = view.read(folder, harnesses)
    except RekindleError as error:
        return [Problem(str(error), error.hint or _FIX)]
    return [
        *_owner(folder, host),
        *_modes(folder),
        *_log(seen),
        *_documents(folder, seen),
        *_state(folder),
        *_leftovers(folder),
    ]


def _owner(folder: AgentFolder, host: str) -> Iterator[Problem]:
    try:
        owner = ownership.read(folder)
    except DocumentError as error:
        yield Problem(str(error), error.hint)
        return
    if owner and owner.host != host:
        yield Problem(
            f"belongs to host {owner.host}, this is {host}",
            "if that host no longer works on it: rekindle doctor --fix --take-over",
        )


def _modes(folder: AgentFolder) -> Iterator[Problem]:
    for path in (*folder.folders, folder.log, folder.state, folder.document("relay")):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue
        if mode & 0o077:
            wanted = "700" if path in folder.folders else "600"
            yield Problem(f"other users can read {path}", f"chmod {wanted} '{path}'")


def _log(seen: View) -> Iterator[Problem]:
    if seen.bad:
        first = seen.bad[0]
        yield Problem(
            f"{len(seen.bad)} lines of ops.jsonl count for nothing, the first at byte"
            f" {first.offset}: {first.reason}",
            "they are skipped; nothing to do",
            is_note=True,
        )
    if seen.pending:
        yield Problem(f"{len(seen.pending)} records of the inbox are not folded yet", _FIX)


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
        for path in sorted(place.iterdir()):
            if path.name.endswith(".rejected"):
                yield Problem(
                    f"an edit could not be used and was set aside: {path}",
                    f"take from it what you need, then: rm '{path}'",
                    is_note=True,
                )
            elif _is_temporary(path):
                yield Problem(f"a killed writer left {path.name}", _FIX)


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(disk.TEMPORARY_PREFIX)
