"""Check a host's credential helper, and keep the host's own credentials from its agents."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rekindle.config import Project
from rekindle.errors import CredentialsError, ManifestError
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import notify_addresses
from rekindle.policy.setup import environment
from rekindle.ports import Harness
from rekindle.system.notifications import Notifier


def require_helper(program: str, root: Path) -> str:
    """Return the helper's absolute path.

    Raises:
        CredentialsError: It is not a program, or it is in the folder for the agents.
    """
    located = shutil.which(program)
    if located is None:
        raise CredentialsError(
            program,
            "is not an executable program",
            hint="write the path of a program to --credentials, without arguments",
        )
    path = Path(located).resolve()
    if path.is_relative_to(root.resolve()):
        raise CredentialsError(
            program,
            "is in the folder for the agents, who could change it",
            hint=f"move it out of {root}",
        )
    return str(path)


def drop_host_credentials(
    project: Project, harness: Harness, variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that a launch may have.

    On a host of a fleet, git's credentials stay with the worker, which pushes the agent's work. If
    the host has a credential helper, the same holds for all other credentials.
    """
    host = project.credentials
    if host is None:
        return dict(variables)
    own = environment.drop_git_variables(variables)
    return environment.drop_login_variables(own, harness.LOGIN_SWITCHES) if host.program else own


def make_host_notifier(addresses: Sequence[str], redaction: Redaction) -> Notifier:
    """Return a notifier on a fleet's host, which sends none of the host's keys.

    The client has checked the addresses already, but the host does not trust it.
    """
    return Notifier(addresses, redaction, refuse=_explain_refused_address)


def _explain_refused_address(address: str) -> str:
    if not notify_addresses.has_only_variables(address):
        return "on a host, it may contain only variables"
    for name in notify_addresses.name_variables(address):
        if environment.is_for_host(name) or environment.is_credential(name):
            return f"${name} is named like a key of the host; use another name"
    return ""


def refuse_host_reference(project: Project, name: str, variable: str) -> None:
    """Refuse an `env:` that would pass on a host's own credential.

    The worker's keys and git's credentials are refused on every host, all others on a host with a
    credential helper.

    Raises:
        ManifestError: The variable is named like a credential, or is a URL with a password.
    """
    host = project.credentials
    if host is None or not variable:
        return
    if environment.is_for_host(variable):
        raise ManifestError(
            f"agent {name}: `env:` names ${variable}, which belongs to the host",
            line=project.marked.line(("agents", name, "env")),
            hint="remove it from `env:`",
        )
    if not host.program or not environment.is_credential(variable, os.environ.get(variable, "")):
        return
    raise ManifestError(
        f"agent {name}: `env:` names ${variable}, which this host does not pass on",
        line=project.marked.line(("agents", name, "env")),
        hint=f"remove it from `env:`, and let {host.program} print it",
    )
