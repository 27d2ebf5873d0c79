"""What another loop left behind: a consensus.md, a memories folder, or a Phoenix folder.

It is read and never written. Whoever wrote it may be careless or hostile: links, pipes, files that
are too large, and bytes that are no text are refused by name.
"""

import stat
from pathlib import Path

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import DocumentError, NotFoundError, UnsafePathError, storing
from rekindle.policy.settings import ADOPT_BYTES
from rekindle.system import disk

RELAY, BRIEF, STATE, RESOLVED = "consensus.md", "brief.md", "state.json", "resolved.jsonl"
_RELAYS = (f"memories/{RELAY}", RELAY)
_NOT_TAKEN = {
    "ops.jsonl": "a log of another form",
    "checkpoint.md": "only this agent's own sessions hand one over",
    "memories/prev_consensus.md": "an older relay",
    "prev_consensus.md": "an older relay",
    "memories/archive": "an archive of another form",
    "archive": "an archive of another form",
}
_COPY = "copy the plain file to a folder of its own, and adopt that"


class Found(msgspec.Struct, frozen=True):
    path: Path
    parts: dict[str, bytes]
    """What each of RELAY, BRIEF, STATE and RESOLVED holds, as far as they are there."""
    left: tuple[str, ...] = ()
    """What is there and has no place here, each with the reason."""

    @property
    def sha256(self) -> str:
        """The same as long as nothing there has changed."""
        hashes = [f"{name} {jsontext.fingerprint(self.parts[name])}" for name in sorted(self.parts)]
        return jsontext.fingerprint("\n".join(hashes).encode())


def read(path: Path) -> Found:
    """What a person named: a file is a relay, a folder is searched for the names we know."""
    with storing(path):
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise NotFoundError(
                f"there is no {path}", hint="name a consensus.md, or the folder that it is in"
            ) from missing
    return _in_folder(path) if stat.S_ISDIR(mode) else Found(path, {RELAY: _require(path)})


def _in_folder(path: Path) -> Found:
    for folder in (path / "memories", path / "memories/archive"):
        if disk.exists(folder):
            disk.refuse_link(folder)
    parts: dict[str, bytes] = {}
    left = []
    for name in _RELAYS:
        data = _bytes(path / name)
        if data is not None and RELAY in parts:
            left.append(f"{name}: there is another one in memories")
        elif data is not None:
            parts[RELAY] = data
    others = {name: _bytes(path / name) for name in (BRIEF, STATE, RESOLVED)}
    parts |= {name: data for name, data in others.items() if data is not None}
    if not parts:
        raise NotFoundError(
            f"{path} has nothing to take over",
            hint=f"looked for {', '.join((*_RELAYS, STATE, BRIEF, RESOLVED))}",
        )
    left += [f"{name}: {why}" for name, why in _NOT_TAKEN.items() if disk.exists(path / name)]
    return Found(path, parts, tuple(left))


def _require(path: Path) -> bytes:
    data = _bytes(path)
    if data is None:
        raise NotFoundError(f"there is no {path}", hint="it was there a moment ago: look again")
    return data


def _bytes(path: Path) -> bytes | None:
    try:
        data = disk.read(path, ADOPT_BYTES + 1)
    except UnsafePathError as unsafe:
        unsafe.hint = _COPY
        raise
    if data is None:
        return None
    if len(data) > ADOPT_BYTES:
        raise DocumentError(
            str(path), f"is larger than {ADOPT_BYTES:,} bytes", hint="take what still counts of it"
        )
    if b"\0" in data:
        raise DocumentError(str(path), "is no text", hint="name a markdown file, or its folder")
    return data
