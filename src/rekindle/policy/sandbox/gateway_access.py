"""Decide how a CLI in a sandbox reaches its model through the gateway that adds the key."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from rekindle.documents.launches.launch_credentials import LaunchCredentials
from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.errors import CredentialsError
from rekindle.policy.sandbox.allowed_hosts import PROXY_PORT

PLACEHOLDER = "key-added-by-the-host"
"""Value of the CLI's key variables, because a CLI without any key does not ask its model."""
_BYPASSES = ("NO_PROXY", "no_proxy")
_TLS_PORT = 443
_PLAIN_PORT = 80


class GatewayAccess(msgspec.Struct, frozen=True):
    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    """Arguments to insert after the CLI's program."""
    keyed: tuple[str, ...]
    """Hosts that have a key, each as `name:port`. For HTTPS on port 443, port 80 is included."""


def make_access(
    program: str,
    harness: str,
    needs: SandboxNeeds,
    environment: Mapping[str, str],
    credentials: LaunchCredentials,
) -> GatewayAccess:
    """Return the variables and arguments with which a CLI asks the gateway instead of its model.

    Raises:
        CredentialsError: The CLI cannot use a gateway, or there is no key for its model's host.
    """
    gateway = needs.gateway
    if gateway is None:
        raise CredentialsError(
            program,
            f"printed `keys`, but {harness} cannot use a gateway",
            hint="print the key in `env` for this CLI, where the agent can read it",
        )
    url = environment.get(gateway.url_variable) or gateway.url
    asked, path = _split(url)
    host = _find_host(asked, credentials)
    if not host:
        model = asked or f"the host in {gateway.url_variable}"
        raise CredentialsError(
            program,
            f"printed no key for {model}, which {harness} asks",
            hint=f"print a key for it, or set {gateway.url_variable} in `env` to the https:// "
            "address of a model whose key you print",
        )
    address = f"http://127.0.0.1:{PROXY_PORT}/{host}{path}"
    return GatewayAccess(
        {
            **dict.fromkeys(gateway.key_variables, PLACEHOLDER),
            gateway.url_variable: address,
            **dict.fromkeys(_BYPASSES, "127.0.0.1"),
        },
        tuple(one.replace("{url}", address) for one in gateway.arguments),
        tuple(one for host in credentials.keys for one in _list_addresses(host)),
    )


def _split(url: str) -> tuple[str, str]:
    """Return the host and the path of an address; empty if it is not one for HTTPS."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "", ""
    is_plain = parts.scheme == "https" and "@" not in parts.netloc and not parts.query
    return (f"{parts.hostname}{port}" if is_plain else ""), parts.path.rstrip("/")


def _find_host(name: str, credentials: LaunchCredentials) -> str:
    """Return the host as `keys` names it, or "" if it has no key."""
    same = (name, name.removesuffix(f":{_TLS_PORT}"), f"{name}:{_TLS_PORT}")
    return next((one for one in same if one in credentials.keys), "")


def _list_addresses(host: str) -> tuple[str, ...]:
    name = host.removesuffix(f":{_TLS_PORT}")
    return (name,) if ":" in name else (f"{name}:{_TLS_PORT}", f"{name}:{_PLAIN_PORT}")


def add_port(host: str) -> str:
    """Return a host of `keys` with its port, which is 443 if it names none."""
    return host if ":" in host else f"{host}:{_TLS_PORT}"
