"""Push a run's result to the user's git remote, for a pull request."""

from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.errors import WorkspaceError
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.repository import Repository
from rekindle.thresholds.storage import WORKTREE_CALL_SECONDS
from rekindle.wiring.pipelines.result_merge import find_result_commit
from rekindle.wiring.pipelines.run_refs import find_repository


class PushTarget(msgspec.Struct, frozen=True):
    """Remote to which a run's result is pushed."""

    remote: str
    """Name of the remote."""
    url: str
    base: str
    """The user's branch, which is the base of the pull request."""


def find_push_target(project: Project) -> PushTarget:
    """Return the remote of the user's branch, or the only remote.

    Raises:
        WorkspaceError: The user is not on a branch, or there is no remote.
    """
    source = find_repository(project)
    base = source.read_head().branch
    if not base:
        raise WorkspaceError(
            "detached",
            "you have no branch checked out, so there is none for a pull request",
            hint="check out the branch that the changes are for: git switch BRANCH",
        )
    repository = Repository(source.folder, timeout=WORKTREE_CALL_SECONDS)
    listed = repository.look("config", "--null", "--list").split("\0")
    settings = dict(entry.partition("\n")[::2] for entry in listed)
    names = [
        key.removeprefix("remote.").removesuffix(".url")
        for key in settings
        if key.startswith("remote.") and key.endswith(".url")
    ]
    wanted = (settings.get(f"branch.{base}.remote"), "origin", *names)
    remote = next((name for name in wanted if name in names), None)
    if remote is None:
        raise WorkspaceError(
            "remote",
            "the repository has no remote to push to",
            hint="add one: git remote add origin URL",
        )
    url = settings.get(f"remote.{remote}.pushurl") or settings[f"remote.{remote}.url"]
    is_relative = url.startswith(("./", "../"))
    return PushTarget(remote, str((source.folder / url).resolve()) if is_relative else url, base)


def push_result(project: Project, target: PushTarget, branch: str, commit: str) -> Path:
    """Push a commit to a branch of the remote. Return the folder of the repository.

    Raises:
        WorkspaceError: The remote refused the commit, or its branch has other commits.
    """
    source = find_repository(project)
    commit = find_result_commit(source, branch, commit)
    remote = RemoteRepository(target.url, f"refs/heads/{branch}")
    pushed = remote.look().work
    is_older = not pushed or (source.has(pushed) and source.is_kept((pushed,), by=(commit,)))
    if not is_older or not remote.push(source, commit, pushed):
        raise WorkspaceError(
            "changed",
            f"the branch {branch} on {target.remote} has commits that the result does not have",
            hint=f"look at them: git fetch {target.remote} {branch}",
        )
    return source.folder
