"""Resolve variables in the addresses under `notify:`, such as `ntfys://$TOPIC` and `$ALERTS`.

Variables are resolved on the host that sends the notification, so secrets are neither written to
the manifest nor sent to a fleet's engine.
"""

import re
from collections.abc import Mapping

from rekindle.errors import NotifyVariableError

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9]{1,15}://", re.ASCII)
_LITERAL = re.compile(r"\w")


def resolve_address(address: str, environ: Mapping[str, str]) -> str:
    """Return an address with its variables replaced by their values.

    Raises:
        NotifyVariableError: A variable is empty or not set.
    """

    def value(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if not environ.get(name):
            raise NotifyVariableError(name)
        return environ[name]

    return _VARIABLE.sub(value, address)


def name_variables(address: str) -> list[str]:
    """Return the names of the variables in an address."""
    return [braced or bare for braced, bare in _VARIABLE.findall(address)]


def has_only_variables(address: str) -> bool:
    """Return whether an address contains nothing but a scheme and variables.

    Any other part may be secret, such as a password, a token in the path, or a topic.
    """
    return not _LITERAL.search(_VARIABLE.sub("", _SCHEME.sub("", address, count=1)))


def hide_address_secrets(address: str) -> str:
    """Return an address for display. Unless it contains only variables, show just its scheme."""
    if has_only_variables(address):
        return address
    scheme = _SCHEME.match(address)
    return f"{scheme[0] if scheme else ''}…"
