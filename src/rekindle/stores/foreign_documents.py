"""Read documents from other tools: a consensus.md, a memories folder, or a Phoenix folder.

Rekindle never writes these documents. Their author may be careless or hostile, so links, pipes,
oversized files and binary data are rejected with an error that names the file.
"""

import stat
from pathlib import Path

import msgspec

from rekindle.errors import (
    DocumentError,
    NotFoundError,
    UnsafePathError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.policy.settings.runtime_settings import ADOPT_BYTES
from rekindle.system.files import durable_files

RELAY, BRIEF, STATE, RESOLVED = "consensus.md", "brief.md", "state.json", "resolved.jsonl"
_RELAYS = (f"memories/{RELAY}", RELAY)
_NOT_TAKEN = {
    "ops.jsonl": "a log in another format",
    "checkpoint.md": "only this agent's own sessions write one",
    "memories/prev_consensus.md": "an older relay",
    "prev_consensus.md": "an older relay",
    "memories/archive": "an archive in another format",
    "archive": "an archive in another format",
}
_COPY = "copy the regular file to a separate folder, and adopt that folder"


class FoundDocuments(msgspec.Struct, frozen=True):
    path: Path
    parts: dict[str, bytes]
    """Contents of RELAY, BRIEF, STATE and RESOLVED, by name. Missing files are left out."""
    left: tuple[str, ...] = ()
    """Files that are not adopted, each with a reason."""

    @property
    def sha256(self) -> str:
        """Hash of all contents."""
        hashes = [
            f"{name} {json_codec.hash_bytes(self.parts[name])}" for name in sorted(self.parts)
        ]
        return json_codec.hash_bytes("\n".join(hashes).encode())


def read_found(path: Path) -> FoundDocuments:
    """Read the documents at a path that the user named: a relay file or a folder."""
    with translate_os_errors(path):
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise NotFoundError(
                f"{path} does not exist", hint="name a consensus.md, or the folder that contains it"
            ) from missing
    return (
        _read_folder(path)
        if stat.S_ISDIR(mode)
        else FoundDocuments(path, {RELAY: _require_bytes(path)})
    )


def _read_folder(path: Path) -> FoundDocuments:
    for folder in (path / "memories", path / "memories/archive"):
        if durable_files.path_exists(folder):
            durable_files.refuse_link(folder)
    parts: dict[str, bytes] = {}
    left_out = []
    for name in _RELAYS:
        data = _read_bytes(path / name)
        if data is not None and RELAY in parts:
            left_out.append(f"{name}: the file in memories is used instead")
        elif data is not None:
            parts[RELAY] = data
    others = {name: _read_bytes(path / name) for name in (BRIEF, STATE, RESOLVED)}
    parts |= {name: data for name, data in others.items() if data is not None}
    if not parts:
        raise NotFoundError(
            f"{path} contains nothing to adopt",
            hint=f"looked for {', '.join((*_RELAYS, STATE, BRIEF, RESOLVED))}",
        )
    left_out += [
        f"{name}: {reason}"
        for name, reason in _NOT_TAKEN.items()
        if durable_files.path_exists(path / name)
    ]
    return FoundDocuments(path, parts, tuple(left_out))


def _require_bytes(path: Path) -> bytes:
    data = _read_bytes(path)
    if data is None:
        raise NotFoundError(
            f"{path} does not exist", hint="it has just been removed: check the path"
        )
    return data


def _read_bytes(path: Path) -> bytes | None:
    try:
        data = durable_files.read_bytes(path, ADOPT_BYTES + 1)
    except UnsafePathError as unsafe:
        unsafe.hint = _COPY
        raise
    if data is None:
        return None
    if len(data) > ADOPT_BYTES:
        raise DocumentError(
            str(path),
            f"is larger than {ADOPT_BYTES:,} bytes",
            hint="reduce it to the parts that still matter",
        )
    if b"\0" in data:
        raise DocumentError(str(path), "is not text", hint="name a markdown file, or its folder")
    return data
