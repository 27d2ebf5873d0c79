"""Reserve run numbers, and find the first commit of a scheduled run on the git remote."""

import secrets

from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.errors import WorkspaceError
from rekindle.policy.pipelines.worker_names import find_last_run
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy

_PREFIXES = ("refs/heads/rekindle/", "refs/rekindle/pipelines/")


def reserve_number(copy: WorkingCopy, url: str, pipeline: str, base: str, last: int = 0) -> int:
    """Reserve the number of a new run above `last`, and return it.

    Branches on the remote may be results of runs on a single host, so their numbers are taken too.
    """
    # Git accepts a push of the commit that the ref already has, so each reservation has its own.
    words = f"Begin a run of {pipeline}\n\n{secrets.token_hex(8)}\n"
    commit = copy.commit(copy.find_tree(base), (base,), words)
    while True:
        known = RemoteRepository(url, "").list_refs(*(f"{start}{pipeline}*" for start in _PREFIXES))
        names = [ref.removeprefix(_PREFIXES[0]).removeprefix(_PREFIXES[1]) for ref in known]
        number = max(find_last_run(names, pipeline), last) + 1
        ref = f"{make_run_refs(pipeline, number)}_base"
        if RemoteRepository(url, ref).push(copy, commit, ""):
            return number


def find_base_branch(base: str | None) -> str:
    """Return the remote branch that `base:` names, or "" for the default branch."""
    return "" if base in {None, "HEAD"} else (base or "").removeprefix("refs/heads/")


def find_branch_commit(url: str, branch: str) -> str:
    """Return the commit of a branch on the remote. For "", use the default branch.

    Raises:
        WorkspaceError: There is no such branch.
    """
    state = RemoteRepository(url, f"refs/heads/{branch}").look()
    commit = state.work if branch else state.head
    if not commit:
        name = f"branch {branch}" if branch else "default branch"
        raise WorkspaceError(
            "missing",
            f"the git remote has no {name}, from which a scheduled run starts",
            hint="push it, or set `base:` of the pipeline to a branch of the remote",
        )
    return commit
