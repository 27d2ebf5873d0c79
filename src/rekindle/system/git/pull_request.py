"""Create a pull request with `gh`, GitHub's command-line program."""

import os
import subprocess
import tempfile
from pathlib import Path

from rekindle.errors import ProgramMissingError, WorkspaceError, translate_os_errors
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import WORKSPACE_TRANSFER_SECONDS
from rekindle.system.processes import program_search

PROGRAM = "gh"


def require_program(manual: str) -> str:
    """Return the path of `gh`. `manual` tells the user what to do without it.

    Raises:
        ProgramMissingError: `gh` is not installed.
    """
    program = program_search.find_executable(PROGRAM)
    if program is None:
        raise ProgramMissingError(PROGRAM, "it is not installed", hint=manual)
    return program


def create_pull_request(
    program: str, folder: Path, *, head: str, base: str, title: str, body: str
) -> str:
    """Create a pull request for a branch that was pushed, and return its address.

    Raises:
        WorkspaceError: `gh` refused to create it.
    """
    with translate_os_errors(folder), tempfile.TemporaryDirectory(prefix="rekindle-") as place:
        file = Path(place) / "body.md"
        file.write_text(body, encoding="utf-8", errors="replace")
        arguments = ("--head", head, "--base", base, "--title", title, "--body-file", str(file))
        try:
            ended = subprocess.run(  # noqa: S603 - found outside every workspace, no shell
                [program, "pr", "create", *arguments],
                cwd=folder,
                env={**os.environ, "GH_PROMPT_DISABLED": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=WORKSPACE_TRANSFER_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _make_refusal("it did not answer in time", head, base) from error
    if ended.returncode:
        complaint = ended.stderr.decode(errors="replace")
        raise _make_refusal(to_one_line(complaint) or f"exit code {ended.returncode}", head, base)
    return to_one_line(ended.stdout.decode(errors="replace"))


def _make_refusal(reason: str, head: str, base: str) -> WorkspaceError:
    return WorkspaceError(
        "pull-request",
        f"the branch was pushed, but `gh pr create` failed: {reason}",
        hint=f"fix it, then run `gh pr create --head {head} --base {base}`",
    )
