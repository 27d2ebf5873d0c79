r"""An exported agent: one file with its log, relay, transcripts, settings and files.

    REKINDLE-EXPORT 1\n
    {"agent": …, "parts": [{"name": …, "size": …, "sha256": …}, …]}\n
    the bytes of all parts, one after the other
    SHA-256 of everything above, as 64 hexadecimal digits, \n

A reader checks the whole file and every part before it uses any of them. It reads the file piece by
piece, because transcripts can be large.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from io import SEEK_END
from typing import Any, BinaryIO

import msgspec

from rekindle.documents import events, manifest, manifest_edit
from rekindle.documents.manifest import Manifest
from rekindle.errors import DocumentError, RekindleError
from rekindle.formats.identifiers import AGENT_NAME, SESSION_ID
from rekindle.thresholds.keep_limits import EXPORT_READ_BYTES
from rekindle.thresholds.storage import JSON_LINE_BYTES

SCHEMA = 1
_MAGIC = b"REKINDLE-EXPORT "
_DIGEST_BYTES = len(sha256().hexdigest()) + len("\n")
"""Length of the last line."""
FILE_SUFFIX = ".rekindle"
AGENT_PREFIX = "agent/"
LOG_PART = f"{AGENT_PREFIX}ops.jsonl"
SESSION_PREFIX = "session/"
SNAPSHOT_PART = "snapshot/files.pack"
DRAFT_PART = "draft/relay.md"
"""The draft of the next relay, if the agent has written one."""
_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\Z")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}\Z")
_FILES = frozenset(
    {"ops.jsonl", "state.json", "resolved.jsonl", "progress.md", "checkpoint.md", "brief.md"}
)
_FOLDERS = ("memories", "transcripts")
_SEGMENT = re.compile(r"\w[\w ._+~:-]{0,200}\Z")
_DAMAGED = "get a complete copy of it, or export the agent again with `rekindle export`"


class ExportedPart(msgspec.Struct, frozen=True):
    """The position of a part follows from the sizes of the parts before it."""

    name: str
    size: int
    sha256: str


class ExportedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot of the agent's work tree, as a git pack."""

    name: str
    """Name in the original repository, such as `trades/12`."""
    commit: str
    """Commit in the pack. It has all files, and no parents."""


class ExportHeader(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    harness: str
    """CLI of the session, or the agent's first one."""
    exported: str
    """Time of the export."""
    folder: str
    """Folder in which the agent worked."""
    entry: dict[str, Any] = {}
    """The agent's keys in the manifest."""
    personas: dict[str, dict[str, Any]] = {}
    """The keys of the agent's personas in the manifest."""
    omitted: tuple[str, ...] = ()
    """Variables in the agent's `env:` whose values are not in the file."""
    session: str = ""
    """Session that the agent continues; empty if its next session is a fresh one."""
    snapshot: ExportedSnapshot | None = None
    """The agent's files; None if the export is without them."""
    parts: tuple[ExportedPart, ...] = ()


class AgentExport(msgspec.Struct, frozen=True):
    """An export whose checksums are right."""

    header: ExportHeader
    digest: str
    """SHA-256 of the file without its last line."""
    file: BinaryIO
    starts: Mapping[str, int]
    """Position of each part in the file."""
    sizes: Mapping[str, int]

    def read_pieces(self, part: str) -> Iterator[bytes]:
        return _read_pieces(self.file, self.starts[part], self.sizes[part])

    def read_lines(self, part: str) -> Iterator[bytes]:
        """Yield the lines of a part. Very long lines are split."""
        position = self.starts[part]
        end = position + self.sizes[part]
        while position < end:
            self.file.seek(position)
            line = self.file.readline(min(JSON_LINE_BYTES, end - position))
            if not line:
                return
            position += len(line)
            yield line


def is_agent_file(path: str) -> bool:
    """Return whether a path in an agent's folder belongs to an export."""
    first, *rest = path.split("/")
    is_safe = all(_SEGMENT.match(segment) for segment in (first, *rest))
    return is_safe and (path in _FILES if not rest else first in _FOLDERS)


def render(header: ExportHeader, parts: Mapping[str, bytes]) -> bytes:
    """Return the file of an export."""
    listed = tuple(
        ExportedPart(name, len(data), sha256(data).hexdigest()) for name, data in parts.items()
    )
    header = msgspec.structs.replace(header, parts=listed)
    begin = b"%b%d\n%b\n" % (_MAGIC, SCHEMA, msgspec.json.encode(header))
    body = b"".join((begin, *parts.values()))
    return b"%b%b\n" % (body, sha256(body).hexdigest().encode())


def parse(file: BinaryIO, name: str) -> AgentExport:
    """Return the export in a file, if the file is complete and unchanged.

    Raises:
        DocumentError: It is not, or a part could be written to a wrong place.
    """
    end = file.seek(0, SEEK_END) - _DIGEST_BYTES
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise DocumentError(name, "is not an exported agent", hint="`rekindle export` writes one")
    digest = _hash_pieces(_read_pieces(file, 0, end))
    file.seek(max(end, 0))
    if file.read() != digest.encode() + b"\n":
        raise DocumentError(name, "is torn or was changed: its checksum is wrong", hint=_DAMAGED)
    file.seek(len(_MAGIC))
    if file.readline(EXPORT_READ_BYTES) != b"%d\n" % SCHEMA:
        hint = "upgrade Rekindle: pip install --upgrade rekindle-agents"
        raise DocumentError(name, "was written by a newer Rekindle", hint=hint)
    header = _parse_header(file.readline(), name)
    export = AgentExport(header, digest, file, *_locate_parts(header, file.tell()))
    _check_parts(export, end, name)
    return export


def _parse_header(line: bytes, name: str) -> ExportHeader:
    try:
        header = msgspec.json.decode(line, type=ExportHeader)
    except msgspec.MsgspecError as error:
        raise DocumentError(name, f"has an invalid header ({error})", hint=_DAMAGED) from error
    if not AGENT_NAME.match(header.agent):
        raise DocumentError(name, "has an invalid agent name", hint=_DAMAGED)
    if header.session and not SESSION_ID.match(header.session):
        raise DocumentError(name, "has an invalid session id", hint=_DAMAGED)
    try:
        read_settings(header)
    except (RekindleError, ValueError, RecursionError) as error:
        raise DocumentError(name, f"has invalid settings ({error})", hint=_DAMAGED) from error
    return header


def _read_pieces(file: BinaryIO, position: int, size: int) -> Iterator[bytes]:
    end = position + size
    while position < end:
        file.seek(position)
        piece = file.read(min(EXPORT_READ_BYTES, end - position))
        if not piece:
            return
        position += len(piece)
        yield piece


def _hash_pieces(pieces: Iterable[bytes]) -> str:
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def render_settings(header: ExportHeader) -> str:
    """Return the exported settings as a part of a manifest."""
    return add_settings("", header).partition("version: 1\n")[2]


def read_settings(header: ExportHeader) -> Manifest:
    """Return a manifest that consists of the exported settings."""
    return manifest.parse(add_settings("", header))


def add_settings(text: str, header: ExportHeader) -> str:
    """Add the exported settings to a manifest's text, which must not have them yet."""
    text = manifest_edit.add_entry(text, "agents", header.agent, header.entry)
    for name, keys in header.personas.items():
        text = manifest_edit.add_entry(text, "personas", name, keys, "Imported with the agent.")
    return text


def _has_event(log: Iterable[bytes]) -> bool:
    """Return whether a log has an event. Lines that were torn by a crash have no effect."""
    for line in log:
        try:
            events.parse(line)
        except DocumentError:
            continue
        return True
    return False


def _locate_parts(header: ExportHeader, position: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the position and the size of each part."""
    starts, sizes = {}, {}
    for part in header.parts:
        starts[part.name], sizes[part.name] = position, part.size
        position += part.size
    return starts, sizes


def _check_parts(export: AgentExport, end: int, name: str) -> None:
    header, position = export.header, min(export.starts.values(), default=end)
    for part in header.parts:
        is_whole = part.size >= 0 and export.starts[part.name] == position
        if not is_whole or not _is_allowed(part.name):
            raise DocumentError(name, f"has a part in a wrong place: {part.name!r}", hint=_DAMAGED)
        if _hash_pieces(export.read_pieces(part.name)) != part.sha256:
            raise DocumentError(name, f"has a damaged part: {part.name!r}", hint=_DAMAGED)
        position += part.size
    if position != end or LOG_PART not in export.starts:
        raise DocumentError(name, "does not contain what its header lists", hint=_DAMAGED)
    if not _has_event(export.read_lines(LOG_PART)):
        raise DocumentError(name, "has a log without events", hint=_DAMAGED)
    if sum(part.startswith(SESSION_PREFIX) for part in export.starts) != bool(header.session):
        raise DocumentError(name, "does not contain one transcript of its session", hint=_DAMAGED)
    if (SNAPSHOT_PART in export.starts) != _has_snapshot(header):
        raise DocumentError(name, "does not contain one snapshot of its files", hint=_DAMAGED)


def _has_snapshot(header: ExportHeader) -> bool:
    """Return whether a header has a valid snapshot of its own agent."""
    if header.snapshot is None:
        return False
    agent, _, number = header.snapshot.name.partition("/")
    is_named = agent == header.agent and bool(_NUMBER.match(number))
    return is_named and bool(_COMMIT.match(header.snapshot.commit))


def _is_allowed(name: str) -> bool:
    if name in {SNAPSHOT_PART, DRAFT_PART}:
        return True
    if name.startswith(AGENT_PREFIX):
        return is_agent_file(name.removeprefix(AGENT_PREFIX))
    segment = name.removeprefix(SESSION_PREFIX)
    return name != segment and bool(_SEGMENT.match(segment))
