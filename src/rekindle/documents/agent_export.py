r"""An exported agent: one file with its log, relay, transcripts and settings.

    REKINDLE-EXPORT 1\n
    {"agent": …, "parts": [{"name": …, "size": …, "sha256": …}, …]}\n
    the bytes of all parts, one after the other
    SHA-256 of everything above, as 64 hexadecimal digits, \n

A reader checks the whole file and every part before it uses any of them.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats.identifiers import AGENT_NAME

SCHEMA = 1
_MAGIC = b"REKINDLE-EXPORT "
_DIGEST_BYTES = len(sha256().hexdigest()) + len("\n")
"""Length of the last line."""
AGENT_PREFIX = "agent/"
SESSION_PREFIX = "session/"
_FILES = frozenset(
    {"ops.jsonl", "state.json", "resolved.jsonl", "progress.md", "checkpoint.md", "brief.md"}
)
_FOLDERS = ("memories", "transcripts")
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~:-]{0,200}\Z")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029,\[\]{}#\"]*\Z")
"""Text that has no effect on the YAML around it."""
_DAMAGED = "get a complete copy of it, or export the agent again with `rekindle export`"


class ExportedPart(msgspec.Struct, frozen=True):
    """The position of a part follows from the sizes of the parts before it."""

    name: str
    size: int
    sha256: str


class ExportHeader(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    harness: str
    exported: str
    """Time of the export."""
    folder: str
    """Folder in which the agent worked."""
    entry: dict[str, Any] = {}
    """The agent's keys in the manifest."""
    persona: dict[str, Any] = {}
    """Permissions of the agent's persona."""
    session: str = ""
    """Session that the agent continues; empty if its next session is a fresh one."""
    parts: tuple[ExportedPart, ...] = ()


class AgentExport(msgspec.Struct, frozen=True):
    header: ExportHeader
    parts: Mapping[str, bytes]


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


def parse(data: bytes, name: str) -> AgentExport:
    """Return the export in a file, if the file is complete and unchanged.

    Raises:
        DocumentError: It is not, or a part could be written to a wrong place.
    """
    if not data.startswith(_MAGIC):
        raise DocumentError(name, "is not an exported agent", hint="`rekindle export` writes one")
    version, _, rest = data.removeprefix(_MAGIC).partition(b"\n")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if digest != sha256(body).hexdigest().encode() + b"\n":
        raise DocumentError(name, "is torn or was changed: its checksum is wrong", hint=_DAMAGED)
    if version != b"%d" % SCHEMA:
        hint = "upgrade Rekindle: pip install --upgrade rekindle-agents"
        raise DocumentError(name, "was written by a newer Rekindle", hint=hint)
    line, _, content = rest[:-_DIGEST_BYTES].partition(b"\n")
    try:
        header = msgspec.json.decode(line, type=ExportHeader)
    except msgspec.MsgspecError as error:
        raise DocumentError(name, f"has an invalid header ({error})", hint=_DAMAGED) from error
    if not AGENT_NAME.match(header.agent):
        raise DocumentError(name, "has an invalid agent name", hint=_DAMAGED)
    if not _has_plain_settings(header):
        raise DocumentError(name, "has invalid settings", hint=_DAMAGED)
    return AgentExport(header, _split_parts(header, content, name))


def _has_plain_settings(header: ExportHeader) -> bool:
    """Return whether the settings can be added to a manifest without changing anything else."""
    words = [header.harness, *header.entry, str(header.entry.get("prompt", ""))]
    words.append(str(header.entry.get("persona", "")))
    lists = [rules for rules in header.persona.values() if rules is not None]
    if not all(isinstance(rules, list) for rules in lists):
        return False
    words += [str(rule) for rules in lists for rule in rules]
    return all(_PLAIN.match(word) for word in words)


def _split_parts(header: ExportHeader, content: bytes, name: str) -> dict[str, bytes]:
    parts: dict[str, bytes] = {}
    offset = 0
    for part in header.parts:
        data = content[offset : offset + part.size]
        if part.size < 0 or sha256(data).hexdigest() != part.sha256:
            raise DocumentError(name, f"has a damaged part: {part.name!r}", hint=_DAMAGED)
        if part.name in parts or not _is_allowed(part.name):
            raise DocumentError(name, f"has a part in a wrong place: {part.name!r}", hint=_DAMAGED)
        parts[part.name] = data
        offset += part.size
    if offset != len(content) or f"{AGENT_PREFIX}ops.jsonl" not in parts:
        raise DocumentError(name, "does not contain what its header lists", hint=_DAMAGED)
    return parts


def _is_allowed(name: str) -> bool:
    if name.startswith(AGENT_PREFIX):
        return is_agent_file(name.removeprefix(AGENT_PREFIX))
    segment = name.removeprefix(SESSION_PREFIX)
    return name != segment and bool(_SEGMENT.match(segment))
