"""Reserve run numbers, and find the first commit of a scheduled run on the git remote."""

from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.errors import WorkspaceError
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy


def reserve_number(copy: WorkingCopy, url: str, pipeline: str, base: str) -> int:
    """Reserve the number of a new run, and return it.

    Pushing the first commit fails if another host has taken the number.
    """
    prefix = make_run_refs(pipeline, 0).removesuffix("0/")
    while True:
        known = RemoteRepository(url, "").list_refs(f"{prefix}*")
        numbers = [ref.removeprefix(prefix).partition("/")[0] for ref in known]
        number = max(map(int, filter(str.isdigit, numbers)), default=0) + 1
        ref = f"{make_run_refs(pipeline, number)}base"
        if RemoteRepository(url, ref).push(copy, base, ""):
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
