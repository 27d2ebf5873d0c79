"""Relays of a history that is not ours: a JSONL of revisions, or a file of a git repository.

Read as they come, oldest first. Nothing is written, and nothing has to be set up for it.
"""

import lzma
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import AuditError, DocumentError, NotFoundError, StoreError, storing
from rekindle.policy.settings import REPLAY_CALL_SECONDS

_XZ = b"\xfd7zXZ\0"
_FORMAT = "one JSON object a line, with the relay in `text`; it may be compressed with xz"


class Past(msgspec.Struct, frozen=True):
    text: str
    when: str = ""
    """As it was told; empty where it was not."""


def read(source: str) -> list[Past]:
    """The revisions that a person named: a file, or REPO:PATH."""
    path = Path(source)
    with storing(source):
        is_file = path.is_file()
    if is_file:
        return list(_lines(path))
    for place, character in enumerate(source):
        folder = Path(source[:place])
        if character == ":" and place and folder.is_dir():
            return _versions(folder, source[place + 1 :])
    raise NotFoundError(
        f"{source!r} is neither a file nor a folder with a path in it",
        hint="name a JSONL of revisions, or REPO:PATH, such as `.:memories/consensus.md`",
    )


def _lines(path: Path) -> Iterator[Past]:
    with storing(path), path.open("rb") as file:
        is_compressed = file.read(len(_XZ)) == _XZ
    try:
        with storing(path), lzma.open(path) if is_compressed else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _past(line, f"{path}:{number}")
    except (lzma.LZMAError, EOFError) as error:
        raise DocumentError(str(path), f"is broken ({error})", hint=_FORMAT) from error


def _past(line: bytes, place: str) -> Past:
    try:
        row = jsontext.decode_foreign(line.removeprefix(b"\xef\xbb\xbf"), place)
    except DocumentError as error:
        raise DocumentError(place, error.reason, hint=_FORMAT) from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise DocumentError(place, "is no revision", hint=_FORMAT)
    when = row.get("ts")
    return Past(row["text"], when if isinstance(when, str) else "")


def _versions(folder: Path, path: str) -> list[Past]:
    from rekindle.system.git import Repository  # noqa: PLC0415 - a JSONL needs no git

    if not path or "\n" in path:
        raise NotFoundError(f"no file is named {path!r}", hint="name a file of the repository")
    try:
        repository = Repository(folder, timeout=REPLAY_CALL_SECONDS, may_be_bare=True)
        found = repository.versions(path)
    except AuditError as error:
        raise StoreError(str(folder), error.reason, hint=error.hint) from error
    if not found:
        raise NotFoundError(
            f"no commit of {folder} has a file {path!r}",
            hint=f"git -C {quote(str(folder))} log --first-parent --stat",
        )
    return [
        Past(
            one.data.decode("utf-8", "replace"),
            datetime.fromtimestamp(one.seconds, UTC).isoformat(),
        )
        for one in found
    ]
