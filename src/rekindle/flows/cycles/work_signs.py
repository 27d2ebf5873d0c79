"""Find signs of work in an agent's folder, using git if possible or file times otherwise."""

from pathlib import Path

import msgspec

from rekindle.documents.events import WorkSigns
from rekindle.policy.progress.artefacts import is_artefact
from rekindle.policy.progress.work_progress import list_artefact_names
from rekindle.policy.projection.projection import Projection
from rekindle.system.files.changed_files import list_changed
from rekindle.system.git.work_status import GitStatus


def read_work_signs(tree: GitStatus, folder: str, head: str, since: float) -> WorkSigns:
    """Return the work done since the commit `head` and the Unix time `since`."""
    files, committed = list_changed_files(tree, folder, head, since)
    return WorkSigns(
        commits=count_commits(tree, head, committed), artefacts=list_artefact_names(files)
    )


def list_changed_files(
    tree: GitStatus, folder: str, head: str, since: float
) -> tuple[list[str], tuple[str, ...]]:
    """Return the changed files, and which of them were committed."""
    if not tree.is_known:
        return list(list_changed(folder, since)), ()
    changed = tree.changed()
    if changed:
        root = Path(tree.root() or folder)
        changed = tuple(path for path in changed if _is_newer(root / path, since))
    committed = tree.committed(head) if head else ()
    return list(dict.fromkeys((*changed, *committed))), committed


def count_commits(tree: GitStatus, head: str, committed: tuple[str, ...]) -> int:
    """Return the number of commits, or 0 if they changed only logs and relays."""
    return len(tree.commits(head)) if any(map(is_artefact, committed)) else 0


def count_resolved(known: Projection, since: float) -> int:
    """Return the number of loops resolved since a Unix time."""
    return sum(
        not loop.is_open and loop.marks[-1].ts.timestamp() >= since for loop in known.loops.values()
    )


def add_resolved(signs: WorkSigns | None, known: Projection, since: float) -> WorkSigns | None:
    """Return the signs with the number of loops resolved since a Unix time."""
    resolved = count_resolved(known, since)
    if not resolved:
        return signs
    return msgspec.structs.replace(signs or WorkSigns(), resolved=resolved)


def _is_newer(file: Path, since: float) -> bool:
    try:
        return file.lstat().st_mtime >= since
    except OSError:
        # Removing a file changes its folder's modification time.
        return file.parent.is_dir() and file.parent.stat().st_mtime >= since
