"""Decide which hosts a sandboxed agent can reach, and how the operator allows others."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from rekindle.documents.launches.sandbox_needs import SandboxNeeds

ANY_HOST = "*"
"""Makes the proxy allow every host, except this one and its link. `egress_proxy` has it too."""
_CREDENTIAL_SERVICE = "100.100.100.200"
"""Address at which a cloud hands out a host's credentials, although it is not link-local."""
_PORTS = {"https": 443, "http": 80}
PROXY_PORT = 3128
"""Port of the proxy inside a sandbox, the only server on the sandbox's network."""
_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")
_BYPASSES = ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy")
"""Variables that would make a program bypass the proxy, which is its only way to reach a host."""


def list_hosts(
    needs: SandboxNeeds, environment: Mapping[str, str], added: Iterable[str]
) -> tuple[str, ...]:
    """Return the hosts that an agent may reach, each as `name:port`.

    A name without a port allows ports 443 and 80. The CLI's environment variables may add another
    host for the model.
    """
    named = (environment.get(variable, "") for variable in needs.host_variables)
    models = (host for url in named if (host := _parse_host(url)))
    hosts = (one for host in (*needs.hosts, *models, *added) for one in _with_ports(host))
    return tuple(dict.fromkeys(host.lower() for host in hosts))


def drop_host_services(hosts: Iterable[str], permitted: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the hosts without the services that only a fleet's host may reach.

    These are link-local addresses, where clouds hand out a host's credentials, and the services on
    the host itself, except the `permitted` ones.
    """
    own = frozenset(permitted)
    return tuple(
        host
        for host in hosts
        if not _is_link_local(host.rpartition(":")[0])
        and (host in own or not is_on_this_host(host))
    )


def is_on_this_host(host: str) -> bool:
    """Return whether `name:port` or `name` is a loopback name or address."""
    name, _, port = host.rpartition(":")
    name = (name if name and port.isdecimal() else host).lower().removesuffix(".")
    try:
        address = ip_address(name)
    except ValueError:  # a name; the proxy checks the addresses that it resolves to
        return name == "localhost" or name.endswith(".localhost")
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_link_local(name: str) -> bool:
    try:
        return ip_address(name).is_link_local or name == _CREDENTIAL_SERVICE
    except ValueError:
        return False


def _parse_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.hostname}:{port}" if parts.hostname and port else ""


def _with_ports(host: str) -> list[str]:
    return [host] if ":" in host else [f"{host}:{port}" for port in _PORTS.values()]


def adapt_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which programs use the sandbox's proxy."""
    own = {name: value for name, value in environment.items() if name not in _BYPASSES}
    return own | dict.fromkeys(_VARIABLES, f"http://127.0.0.1:{PROXY_PORT}")


def render_permission(host: str) -> str:
    """Return the rekindle.yaml line that allows a refused host."""
    name, _, port = host.rpartition(":")
    short = name if port.isdecimal() and int(port) in _PORTS.values() else f"'{host}'"
    return f"sandbox: {{network: [{short}]}}"
