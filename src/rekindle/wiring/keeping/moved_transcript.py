"""Move a CLI's own transcript to another machine or folder."""

import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from rekindle.errors import RekindleError, StoreError, translate_os_errors
from rekindle.flows.transcripts.transcript_files import read_lines
from rekindle.formats import json_codec
from rekindle.harnesses.session_files import SESSION_FILES, hash_folder
from rekindle.policy.redact.redaction import Redaction
from rekindle.system.files import durable_files
from rekindle.thresholds.keep_limits import EXPORT_BYTES
from rekindle.wiring.keeping.find_sessions import find_home

_OPAQUE = frozenset({"signature", "encrypted_content", "thoughtSignature"})
"""Keys whose values the model's API checks, so that a changed one would be refused."""


def read_large_file(path: Path) -> bytes | None:
    """Return the bytes of a log or transcript of any length that an export can contain.

    Raises:
        StoreError: It is longer, or cannot be read.
    """
    if not durable_files.path_exists(path):
        return None
    with translate_os_errors(path):
        size = path.stat().st_size
    if size > EXPORT_BYTES:
        reason = f"has {size:,} bytes, and an exported agent has at most {EXPORT_BYTES:,}"
        raise StoreError(str(path), reason, hint="copy the project's folder instead")
    return durable_files.read_bytes(path, size)


def is_transcript_of(
    session: str, harness: str, folder: str, name: str, lines: Iterable[bytes]
) -> bool:
    """Return whether a file is what its CLI writes for a session in a folder."""
    files = SESSION_FILES[harness]
    is_named = fnmatchcase(name, files.pattern.rpartition("/")[2]) and files.place("/", name)
    return bool(is_named) and files.identify(lines, folder) == session


def redact_transcript(lines: Iterable[bytes], redaction: Redaction) -> Iterator[bytes]:
    """Yield a transcript's lines without secrets. They stay readable for the CLI."""
    for line in lines:
        try:
            before = json_codec.decode_foreign(line, "transcript")
            after = json.loads(redaction.json(line))
        except (ValueError, RekindleError, RecursionError):
            yield redaction.data(line)
            continue
        restored = _restore_opaque(before, after)
        yield line if restored == before else json.dumps(restored).encode() + b"\n"


def _restore_opaque(before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        names = zip(before, after, strict=False)
        return {
            new: before[old] if old in _OPAQUE else _restore_opaque(before[old], after[new])
            for old, new in names
        }
    if isinstance(before, list) and isinstance(after, list):
        return [_restore_opaque(*pair) for pair in zip(before, after, strict=False)]
    return after


def rename_folder(lines: Iterable[bytes], before: str, after: str) -> Iterator[bytes]:
    """Yield a transcript's lines, in which the session's own folder has another path."""
    for line in lines:
        renamed = line
        for old, new in (
            (f'"cwd":{json.dumps(before)}', f'"cwd":{json.dumps(after)}'),
            (f'"cwd": {json.dumps(before)}', f'"cwd": {json.dumps(after)}'),
            (f'"{hash_folder(before)}"', f'"{hash_folder(after)}"'),
        ):
            renamed = renamed.replace(old.encode(), new.encode())
        yield renamed


def find_place(harness: str, folder: Path, name: str) -> Path:
    """Return the path at which the CLI looks for a transcript of a session in a folder.

    Raises:
        StoreError: The CLI has no such place.
    """
    files = SESSION_FILES[harness]
    place = files.place(str(folder), name)
    if not place:
        hint = "import the agent into a folder with a shorter path"
        raise StoreError(str(folder), f"is too long for a session of {harness}", hint=hint)
    return find_home(files) / place


def is_place_free(
    path: Path, moved: Iterable[bytes], exported: Iterable[bytes], redaction: Redaction
) -> bool:
    """Return whether a transcript must be written, or False if the CLI has it already.

    Codex keeps all sessions in one place, so that the original is there if only the folder changes.

    Raises:
        StoreError: The CLI has a session with the same id and another content.
    """
    if not durable_files.path_exists(path):
        return True
    original = hash_lines(exported)
    there = {hash_lines(read_lines(str(path)))}
    there.add(hash_lines(redact_transcript(read_lines(str(path)), redaction)))
    if original not in there and hash_lines(moved) not in there:
        hint = "move that file away, or import the agent on another machine"
        raise StoreError(str(path), "is another transcript of the same session", hint=hint)
    return False


def hash_lines(lines: Iterable[bytes]) -> str:
    """Return the SHA-256 of a transcript."""
    digest = sha256()
    for line in lines:
        digest.update(line)
    return digest.hexdigest()


def place_transcript(harness: str, folder: Path, path: Path, lines: Iterable[bytes]) -> None:
    """Write a transcript for the CLI."""
    missing = [parent for parent in path.parents if not durable_files.path_exists(parent)]
    for parent in reversed(missing):
        durable_files.make_folder(parent)
    if harness == "gemini":
        # Gemini CLI recognises its folder for a project by this file.
        durable_files.replace_file(path.parents[1] / ".project_root", str(folder).encode())
    durable_files.replace_file(path, lines)
