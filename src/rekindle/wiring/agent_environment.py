"""Build the environment for an agent's program."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.errors import ManifestError
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import command_harness
from rekindle.policy.setup import environment
from rekindle.ports import Harness
from rekindle.system.processes import program_search
from rekindle.wiring.access.guarded_path import (
    GuardedPath,
    guard_path,
)
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_routes import find_account, select_account
from rekindle.wiring.credential_setup import drop_host_credentials, refuse_host_reference
from rekindle.wiring.open_store import find_harness

_PATH_VARIABLES = ("PATH", "HOME")
_LOADER_PREFIXES = ("LD_", "GLIBC_", "GCONV_", "LOCPATH", "MALLOC_", "BASH_ENV", "PYTHON")
"""Variables that load code into each program, also into the one that creates the sandbox."""


class AgentEnvironment(msgspec.Struct, frozen=True):
    """Variables and PATH for an agent's program."""

    variables: dict[str, str]
    path: GuardedPath


def locate_words(project: Project, name: str, words: Sequence[str]) -> tuple[str, ...]:
    """Resolve relative paths in a command, first in the agent's folder, then in the project's.

    A summarizer needs this, because it runs in another folder. The first word is a path if it
    contains a slash. Any other word with a slash or a dot is a path if that file exists.
    """
    folders = (find_agent_dir(project, name), project.path)
    return tuple(_locate_file(word, folders, number == 0) for number, word in enumerate(words))


def _locate_file(word: str, folders: Sequence[Path], is_program: bool) -> str:  # noqa: FBT001 - private
    if "/" not in word and (is_program or "." not in word):
        return word
    with suppress(OSError, ValueError):  # the launch reports unreadable folders and NUL characters
        return next((str(place / word) for place in folders if (place / word).is_file()), word)
    return word


def make_environment(project: Project, name: str) -> AgentEnvironment:
    """Return the environment for an agent's program.

    Raises:
        ManifestError: The harness is unknown, or a variable in `env:` cannot be set.
    """
    entry, harness = project.manifest.agents[name], find_harness(project, name)
    folder = find_agent_dir(project, name)
    program_search.exclude_folders(folder)
    passed_on = environment.select_variables(
        os.environ, harness.PASSED_PREFIXES, harness.BLOCKED_VARIABLES
    )
    own = _resolve_variables(project, name, entry.env or {})
    guarded = guard_path(passed_on.get("PATH", ""), folder, harness.CAN, stays=entry.mode == "stay")
    if (
        "PATH" in own or harness.NAME == command_harness.NAME
    ):  # the operator set PATH, or there is no sandbox
        guarded = GuardedPath(passed_on.get("PATH", ""))
    if "PATH" in passed_on:
        passed_on["PATH"] = guarded.cli
    passed_on = drop_host_credentials(project, harness, passed_on)
    variables = select_account(project, name, harness, passed_on)
    _refuse_account_variable(project, name, harness, own)
    _refuse_paths_on_host(project, name, harness, own)
    return AgentEnvironment({**variables, **own}, guarded)


def _refuse_account_variable(
    project: Project, name: str, harness: Harness, own: dict[str, str]
) -> None:
    """Refuse an `env:` that would use another login than the agent's account."""
    if harness.ACCOUNT_VARIABLE in own and find_account(project, name, harness) is not None:
        raise ManifestError(
            f"agent {name}: `env:` sets {harness.ACCOUNT_VARIABLE}, which its account sets too",
            line=project.marked.line(("agents", name, "env")),
            hint=f"remove {harness.ACCOUNT_VARIABLE} from `env:`, or the agent's account of "
            f"{harness.NAME} from `accounts:`",
        )


def _refuse_paths_on_host(
    project: Project, name: str, harness: Harness, own: dict[str, str]
) -> None:
    """Refuse settings that would show other folders in a host's sandbox, or run code outside."""
    if project.floor is None:
        return
    if find_account(project, name, harness) is not None:
        raise ManifestError(
            f"agent {name}: a host does not use the folders in `accounts:`",
            line=project.marked.line(("agents", name)),
            hint="remove the agent's account, and log in to the CLI on the host",
        )
    files = harness.HOOK_FILES
    moved = (files.moved_by, files.home_moved_by) if files is not None else ()
    refused = {*_PATH_VARIABLES, *moved}
    if found := [key for key in own if key in refused or key.startswith(_LOADER_PREFIXES)]:
        raise ManifestError(
            f"agent {name}: `env:` sets {found[0]}, which could weaken the host's sandbox",
            line=project.marked.line(("agents", name, "env")),
            hint=f"remove {found[0]} from `env:`, or set it in the environment of the host's "
            "`rekindle fleet worker`",
        )


def _resolve_variables(project: Project, name: str, own: dict[str, str]) -> dict[str, str]:
    """Return the variables in `env:`, with `$NAME` replaced by the operator's value."""
    variables = {}
    for key, value in own.items():
        variable = environment.find_reference(value)
        refuse_host_reference(project, name, variable)
        unfit = "\0" in key + value or "=" in key or not key
        if unfit or (variable and variable not in os.environ):
            raise ManifestError(
                f"agent {name}: {to_one_line(key)!r} cannot be set"
                + (f": ${variable} is not set" if variable and not unfit else ""),
                line=project.marked.line(("agents", name, "env")),
                hint=(f"export {variable} first, or remove it from rekindle.yaml")
                if variable
                else "correct `env:`",
            )
        variables[key] = os.environ[variable] if variable else value
    return variables
