"""Settings of a fleet: `fleet:` in rekindle.yaml."""

from typing import Annotated

import msgspec

from rekindle.formats.validation import Duration
from rekindle.formats.validation import describe_key as _doc
from rekindle.policy.settings.metrics_settings import MetricsSettings

__all__ = ["CodecSettings", "FleetSettings", "TlsSettings"]


class TlsSettings(msgspec.Struct, frozen=True):
    """Files for a TLS connection, relative to the manifest's folder; empty if not set."""

    ca: Annotated[str, _doc("Certificate file for the certificate authority.")] = ""
    cert: Annotated[str, _doc("Certificate file for this host.")] = ""
    key: Annotated[str, _doc("Private key file for this host's certificate.")] = ""
    server_name: Annotated[str, _doc("Server name in the engine's certificate.")] = ""


class CodecSettings(msgspec.Struct, frozen=True):
    """Keys that encrypt documents before they are sent to the engine."""

    keys: Annotated[
        list[str],
        _doc(
            "Environment variables, each holding a key, such as `[$NEW, $OLD]`. The first key "
            "encrypts."
        ),
    ] = []
    key_files: Annotated[
        list[str],
        _doc("Files, each holding a key, as an alternative to `keys`. The first key encrypts."),
    ] = []
    strict: Annotated[
        bool,
        _doc(
            "Whether to refuse plain text if a key is set. Use `false` while you introduce "
            "encryption."
        ),
    ] = True


class FleetSettings(msgspec.Struct, frozen=True):
    """A fleet's engine and the connection to it."""

    address: Annotated[str, _doc("The engine's host and port.")] = "127.0.0.1:7233"
    namespace: Annotated[str, _doc("Engine namespace.", min_length=1)] = "default"
    pool: Annotated[str, _doc("Pool of hosts that may run these agents.")] = "default"
    team: Annotated[
        str,
        _doc(
            "Team that these agents belong to, or empty. Teams get a fair share of free slots, and "
            "`rekindle fleet team` limits them."
        ),
    ] = ""
    heartbeat_timeout: Annotated[
        Duration, _doc("Time without a heartbeat after which a host's agents move to another host.")
    ] = Duration(75)
    fold_seconds: Annotated[
        Duration,
        _doc(
            "Maximum time that reports of tool calls wait on a host before they are sent to the "
            "engine. Everything that another host needs is sent immediately."
        ),
    ] = Duration(300)
    pushes_per_minute: Annotated[
        int,
        _doc(
            "Maximum number of pushes from each host to a git remote. A host pushes the work of "
            "all agents that are waiting at once.",
            "count",
            ge=1,
        ),
    ] = 60
    tls: Annotated[
        TlsSettings | bool | None,
        _doc(
            "`true` to use the system's root certificates, a mapping to use your own files, or "
            "`false` for plain text. Required if the engine is on another host."
        ),
    ] = None
    api_key: Annotated[
        str, _doc("Environment variable that holds the engine's API key, such as `$ENGINE_KEY`.")
    ] = ""
    codec: CodecSettings = CodecSettings()
    metrics: MetricsSettings = MetricsSettings()


def list_engine_files(fleet: FleetSettings) -> list[str]:
    """Return the files with the engine's credentials and keys. Each host has its own copies."""
    tls = fleet.tls if isinstance(fleet.tls, TlsSettings) else TlsSettings()
    return [file for file in (tls.ca, tls.cert, tls.key, *fleet.codec.key_files) if file]
