"""Read relays from a history: a JSONL file of revisions, or a file in a git repository.

Revisions are read oldest first. Nothing is written.
"""

import lzma
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from shlex import quote

import msgspec

from rekindle.errors import (
    AuditError,
    DocumentError,
    NotFoundError,
    StoreError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.policy.settings.runtime_settings import REPLAY_CALL_SECONDS

_XZ = b"\xfd7zXZ\0"
_FORMAT = (
    "the file needs one JSON object per line, with the relay in `text` and, if known, the files "
    "changed since the previous line in the list `changed`; it may be compressed with xz"
)


class PastRelay(msgspec.Struct, frozen=True):
    text: str
    when: str = ""
    """Time of the revision; empty if unknown."""
    changed: tuple[str, ...] | None = None
    """Files changed since the previous revision, or None if unknown."""
    path: str = ""
    """The relay's own path among the changed files, or empty if unknown."""


def read_history(source: str) -> list[PastRelay]:
    """Return the revisions in the source that the user named, a file or REPO:PATH."""
    path = Path(source)
    with translate_os_errors(source):
        is_file = path.is_file()
    if is_file:
        return list(_read_jsonl(path))
    for position, character in enumerate(source):
        folder = Path(source[:position])
        if character == ":" and position and folder.is_dir():
            return _read_versions(folder, source[position + 1 :])
    raise NotFoundError(
        f"{source!r} is neither a file nor REPO:PATH",
        hint="name a JSONL file of revisions, or REPO:PATH, such as `.:memories/consensus.md`",
    )


def _read_jsonl(path: Path) -> Iterator[PastRelay]:
    with translate_os_errors(path), path.open("rb") as file:
        is_compressed = file.read(len(_XZ)) == _XZ
    try:
        with (
            translate_os_errors(path),
            lzma.open(path) if is_compressed else path.open("rb") as lines,
        ):
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse_revision(line, f"{path}:{number}")
    except (lzma.LZMAError, EOFError) as error:
        raise DocumentError(str(path), f"is broken ({error})", hint=_FORMAT) from error


def _parse_revision(line: bytes, place: str) -> PastRelay:
    try:
        row = json_codec.decode_foreign(line.removeprefix(b"\xef\xbb\xbf"), place)
    except DocumentError as error:
        raise DocumentError(place, error.reason, hint=_FORMAT) from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise DocumentError(place, "is not a revision", hint=_FORMAT)
    when, path = row.get("ts"), row.get("path")
    return PastRelay(
        row["text"],
        when if isinstance(when, str) else "",
        _parse_changed(row.get("changed"), place),
        path if isinstance(path, str) else "",
    )


def _parse_changed(changed: object, place: str) -> tuple[str, ...] | None:
    if changed is None:
        return None
    if not isinstance(changed, list) or not all(isinstance(path, str) for path in changed):
        raise DocumentError(place, "has a `changed` that is not a list of paths", hint=_FORMAT)
    return tuple(changed)


def _read_versions(folder: Path, path: str) -> list[PastRelay]:
    from rekindle.system.git.repository import Repository  # noqa: PLC0415 - JSONL files do not need git

    if not path or "\n" in path:
        raise NotFoundError(
            f"{path!r} is not a valid file name", hint="name a file in the repository"
        )
    try:
        repository = Repository(folder, timeout=REPLAY_CALL_SECONDS, may_be_bare=True)
        revisions = repository.versions(path)
        own = repository.find_full_path(path)
        changes = [
            repository.list_changes(before.oid, after.oid) for before, after in pairwise(revisions)
        ]
    except AuditError as error:
        raise StoreError("relay history", error.reason, hint=error.hint) from error
    if not revisions:
        raise NotFoundError(
            f"no commit in {folder} has the file {path!r}",
            hint=f"git -C {quote(str(folder))} log --first-parent --stat",
        )
    return [
        PastRelay(
            revision.data.decode("utf-8", "replace"),
            datetime.fromtimestamp(revision.seconds, UTC).isoformat(),
            changed,
            own,
        )
        for revision, changed in zip(revisions, ((), *changes), strict=True)
    ]
