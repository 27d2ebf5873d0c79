"""Resolve variables in the addresses under `notify:`, such as `ntfys://$TOPIC` and `$ALERTS`.

The host that sends a notification resolves them, so the manifest needs no secrets, and none is sent
to the engine of a fleet.
"""

import re
from collections.abc import Mapping

from rekindle.errors import NotifyVariableError

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9]{1,15}://", re.ASCII)
_LITERAL = re.compile(r"\w")


def resolve_address(address: str, environ: Mapping[str, str]) -> str:
    """Return an address with the values of its variables.

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
    """Return the variables that an address names."""
    return [braced or bare for braced, bare in _VARIABLE.findall(address)]


def has_only_variables(address: str) -> bool:
    """Return whether an address consists of variables alone, except for its scheme.

    Any other part may be a secret: a password, a token in the path, the name of a topic.
    """
    return not _LITERAL.search(_VARIABLE.sub("", _SCHEME.sub("", address, count=1)))


def hide_address_secrets(address: str) -> str:
    """Return an address to show: all of it if it has only variables, else its scheme."""
    if has_only_variables(address):
        return address
    scheme = _SCHEME.match(address)
    return f"{scheme[0] if scheme else ''}…"
