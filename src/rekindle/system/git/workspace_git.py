"""Run git for a workspace, and turn its failures into errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from rekindle.errors import WorkspaceError
from rekindle.system.git import git_process
from rekindle.system.git.git_process import GitResult


def start_git(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    timeout: float,
    stdin: bytes | IO[bytes] = b"",
    stdout: IO[bytes] | None = None,
) -> GitResult:
    """Run git for a workspace.

    Raises WorkspaceError if git is missing, cannot be started or times out.
    """
    program = git_process.find_git()
    if program is None:
        raise WorkspaceError(
            "absent",
            "git is not installed",
            hint="install git; Rekindle needs it to move workspaces",
        )
    try:
        return git_process.run_git(
            program,
            arguments,
            folder=folder,
            environment=environment,
            settings=settings,
            timeout=timeout,
            stdin=stdin,
            stdout=stdout,
        )
    except TimeoutError as late:
        raise WorkspaceError("slow", str(late), hint="Rekindle will retry later") from late
    except OSError as error:
        raise WorkspaceError(
            "broken", f"git could not be started: {error.strerror}", hint="git --version"
        ) from error


def make_refusal(command: str, ended: GitResult) -> WorkspaceError:
    message = f"git {command}: {ended.reason}"
    if match := git_process.LOCKED.search(ended.complaint):
        return WorkspaceError(
            "locked", message, hint=f"if no git process is running: rm '{match[1]}'"
        )
    return WorkspaceError("refused", message, hint="run: git status; git fsck")
