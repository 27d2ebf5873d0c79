"""Signs of work in an agent's folder since a moment, as git or else the file system shows them."""

from pathlib import Path

import msgspec

from rekindle.documents.event import WorkSigns
from rekindle.policy.artefacts import is_artefact
from rekindle.policy.fold import Projection
from rekindle.policy.progress import artefact_names
from rekindle.system.changed_files import list_changed
from rekindle.system.worktree import WorkTree


def read_signs(folder: str, head: str, since: float) -> WorkSigns:
    """Return what was done after the commit `head` and the moment `since`."""
    tree = WorkTree(folder)
    files, committed = changed_files(tree, folder, head, since)
    return WorkSigns(commits=count_commits(tree, head, committed), artefacts=artefact_names(files))


def changed_files(
    tree: WorkTree, folder: str, head: str, since: float
) -> tuple[list[str], tuple[str, ...]]:
    """Return the files that were changed, and those of them that were committed."""
    if not tree.is_known:
        return list(list_changed(folder, since)), ()
    changed = tree.changed()
    if changed:
        root = Path(tree.root() or folder)
        changed = tuple(path for path in changed if _is_newer(root / path, since))
    committed = tree.committed(head) if head else ()
    return list(dict.fromkeys((*changed, *committed))), committed


def count_commits(tree: WorkTree, head: str, committed: tuple[str, ...]) -> int:
    """Return how many commits there were; those of nothing but logs, or of the relay, are none."""
    return len(tree.commits(head)) if any(map(is_artefact, committed)) else 0


def count_resolved(known: Projection, since: float) -> int:
    """Return how many loops were resolved after a moment."""
    return sum(
        not loop.is_open and loop.marks[-1].ts.timestamp() >= since for loop in known.loops.values()
    )


def with_resolved(signs: WorkSigns | None, known: Projection, since: float) -> WorkSigns | None:
    """Return the signs with the loops that were resolved after a moment."""
    resolved = count_resolved(known, since)
    if not resolved:
        return signs
    return msgspec.structs.replace(signs or WorkSigns(), resolved=resolved)


def _is_newer(file: Path, since: float) -> bool:
    try:
        return file.lstat().st_mtime >= since
    except OSError:
        # Removed: its folder knows when, at the latest.
        return file.parent.is_dir() and file.parent.stat().st_mtime >= since
