"""Copy a session's transcript to another account of the same CLI, so that it can continue there."""

import os
from pathlib import Path

from rekindle.flows.transcripts import transcript_files
from rekindle.system.files import durable_files
from rekindle.thresholds.storage import CARRIED_TRANSCRIPT_BYTES


def carry_transcript(transcript: str, before: str, after: str) -> bool:
    """Copy a transcript from the account's folder `before` to `after`.

    `transcript` is its path in either of them. Return whether the session can continue in `after`.
    A transcript there that has more turns stays as it is. One with other turns belongs to other
    work, so it stays too, and the session cannot continue.

    The copy is complete or absent, and the log does not mention it: a supervisor that takes over
    copies again.
    """
    if not (transcript and before and after):
        return False
    roots = [Path(os.path.realpath(folder)) for folder in (before, after)]
    path = Path(os.path.realpath(transcript))
    below = next((path.relative_to(root) for root in roots if path.is_relative_to(root)), None)
    if below is None:
        return False
    source, target = (root / below for root in roots)
    data, there = _read(source), _read(target)
    if data is None:
        return False
    if there is not None and there.startswith(data):
        return True
    if durable_files.path_exists(target) and (there is None or not data.startswith(there)):
        return False
    for folder in reversed(below.parents):
        if folder.parts:
            durable_files.make_folder(roots[1] / folder)
    durable_files.replace_file(target, data, root=roots[1])
    return True


def _read(path: Path) -> bytes | None:
    """Return a transcript's content, or None if it cannot be read or is too large to copy."""
    try:
        with transcript_files.open_transcript(str(path)) as file:
            data = file.read(CARRIED_TRANSCRIPT_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= CARRIED_TRANSCRIPT_BYTES else None
