"""Find the first commit of a scheduled run on the git remote, and reserve the number of a run."""

from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.errors import WorkspaceError
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy


def reserve_number(copy: WorkingCopy, url: str, pipeline: str, base: str) -> int:
    """Return the number of a new run, which no other host can get.

    The push of the first commit fails if the number is taken.
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
    """Return the branch of the remote that `base:` names, or "" for the default branch."""
    return "" if base in {None, "HEAD"} else (base or "").removeprefix("refs/heads/")


def find_branch_commit(url: str, branch: str) -> str:
    """Return the commit of a branch on the remote, or of the default branch for "".

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
