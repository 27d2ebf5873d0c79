"""Configuration of the processes of a cluster, as the server reads it: JSON is also YAML."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rekindle.fleet.engine.dev_server import SERVER_SETTINGS

SERVICES = ("frontend", "history", "matching", "worker")
MIN_SHARDS, MAX_SHARDS = 4, 16
POLL_SECONDS = 5
"""Seconds between two reads of the dynamic configuration; the server allows no shorter time."""
_PORTS = {"frontend": 0, "history": 1, "matching": 2, "worker": 3}
_MEMBERSHIP, _METRICS = 10, 20
PORTS = 30
"""Number of ports that a server may use, from its first one."""


@dataclass(frozen=True)
class Member:
    """One server process: its name, its machine and its services."""

    name: str
    machine: str
    services: tuple[str, ...]


def place_together(machines: int = 3) -> tuple[Member, ...]:
    """Return one process with all services on each machine."""
    return tuple(
        Member(f"server-{number}", f"machine-{number}", SERVICES)
        for number in range(1, machines + 1)
    )


def place_apart(machines: int = 2) -> tuple[Member, ...]:
    """Return one process for each service on each machine, so that each can fail by itself."""
    return tuple(
        Member(f"{service}-{number}", f"machine-{number}", (service,))
        for service in SERVICES
        for number in range(1, machines + 1)
    )


@dataclass(frozen=True)
class DatabaseAddress:
    """Address of PostgreSQL for the servers."""

    address: str
    user: str
    password: str


def service_port(first_port: int, service: str) -> int:
    return first_port + _PORTS[service]


def metrics_port(first_port: int, member: Member) -> int:
    """Return the port of a process's metrics; no two processes of a machine have the same."""
    return first_port + _METRICS + _PORTS[member.services[0]]


def render_config(
    member: Member,
    *,
    ip: str,
    first_port: int,
    shards: int,
    database: DatabaseAddress,
    dynamic: str,
) -> str:
    """Return the configuration file of a process on a machine with this address."""
    stores = {"default": ("temporal", 20), "visibility": ("temporal_visibility", 5)}
    rendered = {
        "log": {"stdout": True, "level": "warn"},
        "persistence": {
            "numHistoryShards": shards,
            "defaultStore": "default",
            "visibilityStore": "visibility",
            "datastores": {
                name: {"sql": _store(database, schema, connections)}
                for name, (schema, connections) in stores.items()
            },
        },
        "global": {
            "membership": {"maxJoinDuration": "30s", "broadcastAddress": ip},
            "metrics": {
                "prometheus": {
                    "framework": "tally",
                    "timerType": "histogram",
                    "listenAddress": f"{ip}:{metrics_port(first_port, member)}",
                }
            },
        },
        "services": {
            service: {
                "rpc": {
                    "grpcPort": service_port(first_port, service),
                    "membershipPort": first_port + _MEMBERSHIP + number,
                    "bindOnIP": ip,
                }
            }
            for service, number in _PORTS.items()
        },
        "clusterMetadata": {
            "enableGlobalNamespace": False,
            "failoverVersionIncrement": 10,
            "masterClusterName": "active",
            "currentClusterName": "active",
            "clusterInformation": {
                "active": {
                    "enabled": True,
                    "initialFailoverVersion": 1,
                    "rpcName": "frontend",
                    # All processes say the same: otherwise each one changes what the others wrote.
                    "rpcAddress": f"127.0.0.1:{service_port(first_port, 'frontend')}",
                }
            },
        },
        "dcRedirectionPolicy": {"policy": "noop"},
        "dynamicConfigClient": {"filepath": dynamic, "pollInterval": f"{POLL_SECONDS}s"},
    }
    return json.dumps(rendered, indent=1)


def render_dynamic_config(
    settings: Mapping[str, Any], *, namespace: str = "", only: Mapping[str, Any] | None = None
) -> str:
    """Return the dynamic configuration: what a fleet needs, and these settings.

    The settings `only` hold for one namespace.
    """
    needed = {name: json.loads(value) for name, value in map(_split, SERVER_SETTINGS)}
    rendered = {name: [{"value": one}] for name, one in (needed | dict(settings)).items()}
    for name, one in (only or {}).items():
        rendered[name] = [{"value": one, "constraints": {"namespace": namespace}}]
    return json.dumps(rendered)


def _split(setting: str) -> tuple[str, str]:
    name, _, value = setting.partition("=")
    return name, value


def _store(database: DatabaseAddress, schema: str, connections: int) -> dict[str, Any]:
    return {
        "pluginName": "postgres12",
        "databaseName": schema,
        "connectAddr": database.address,
        "connectProtocol": "tcp",
        "user": database.user,
        "password": database.password,
        "maxConns": connections,
        "maxIdleConns": connections,
        "maxConnLifetime": "1h",
    }
