"""Check that the `fleet:` settings are valid and safe.

An agent's documents are sent to the engine and stored there. They leave this host as plain text
only if `tls: false` permits it. A manifest never contains a key.
"""

import re

import msgspec

from rekindle.errors import ManifestError
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.formats.validation import (
    Duration,
    join_path,
)
from rekindle.formats.yaml_lines import (
    KeyPath,
    MarkedData,
)
from rekindle.policy.settings import metrics_check
from rekindle.policy.settings.runtime_settings import (
    FleetSettings,
    TlsSettings,
)
from rekindle.thresholds.fleet_limits import FLEET_SHORTEST_HEARTBEAT_SECONDS

SHORTEST_HEARTBEAT = Duration(FLEET_SHORTEST_HEARTBEAT_SECONDS)
_ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})", re.ASCII)
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]", re.ASCII)
_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PORTS = range(1, 65_536)


class FleetWarning(msgspec.Struct, frozen=True):
    """Warning about a setting that works but should be changed."""

    what: str
    fix: str


def require_valid_fleet(fleet: FleetSettings, marked: MarkedData) -> None:
    """Raise ManifestError, with the line number, for the first invalid setting."""
    _require_address(fleet, marked)
    for key, name in (("pool", fleet.pool), ("team", fleet.team)):
        if not AGENT_NAME.match(name) and (name or key == "pool"):
            raise _make_refusal(
                marked,
                key,
                f"{name!r} is not a valid {key} name",
                "use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
            )
    if not SHORTEST_HEARTBEAT <= fleet.heartbeat_timeout < float("inf"):
        raise _make_refusal(
            marked,
            "heartbeat_timeout",
            f"a heartbeat_timeout of {fleet.heartbeat_timeout} is not valid",
            f"use {SHORTEST_HEARTBEAT} or more; the default is {FleetSettings().heartbeat_timeout}",
        )
    _require_tls(fleet, marked)
    _require_variables(fleet, marked)
    metrics_check.require_valid_metrics(fleet.metrics, marked, ("fleet", "metrics"))
    if fleet.metrics.prometheus and fleet.metrics.otlp:
        raise _make_refusal(
            marked,
            "metrics",
            "`prometheus` and `otlp` are both set",
            "set only one of them; an OpenTelemetry collector can also read the metrics from the"
            " address for Prometheus",
        )


def find_fleet_warnings(fleet: FleetSettings) -> list[FleetWarning]:
    """Return the warnings of `rekindle doctor` about settings that are valid but unsafe."""
    warnings = []
    if not (fleet.codec.keys or fleet.codec.key_files):
        warnings.append(
            FleetWarning(
                "the engine's database stores the agents' documents unencrypted",
                "create a key with `rekindle fleet key`, and add it to `fleet: codec:`",
            )
        )
    if fleet.tls is False and not is_loopback(fleet.address):
        key = ", with the engine's key" if fleet.api_key else ""
        warnings.append(
            FleetWarning(
                f"documents are sent to {fleet.address} in plain text{key}",
                "set `fleet: tls: true`, or name the TLS files there",
            )
        )
    return warnings


def is_loopback(address: str) -> bool:
    match = _ADDRESS.fullmatch(address)
    return bool(match and _LOOPBACK.fullmatch(match["host"]))


def _require_address(fleet: FleetSettings, marked: MarkedData) -> None:
    match = _ADDRESS.fullmatch(fleet.address)
    if not match or int(match["port"]) not in _PORTS:
        raise _make_refusal(
            marked,
            "address",
            f"{fleet.address!r} is not a valid engine address",
            f"use the engine's host and port, as in `address: {FleetSettings().address}`",
        )


def _require_tls(fleet: FleetSettings, marked: MarkedData) -> None:
    if fleet.tls is None and not is_loopback(fleet.address):
        raise _make_refusal(
            marked,
            "address",
            f"documents would be sent to {fleet.address} in plain text",
            "set `tls: true`, or name the TLS files; `tls: false` permits plain text",
        )
    if isinstance(fleet.tls, TlsSettings) and bool(fleet.tls.cert) != bool(fleet.tls.key):
        raise _make_refusal(
            marked,
            "tls",
            "`cert` and `key` must be set together",
            "set both `cert` and `key`, or neither",
        )


def _require_variables(fleet: FleetSettings, marked: MarkedData) -> None:
    """Raise ManifestError if a key is given as text instead of as a variable.

    The message omits the value, which may be a secret.
    """
    places: list[tuple[KeyPath, str]] = [
        (("fleet", "codec", "keys", at), word) for at, word in enumerate(fleet.codec.keys)
    ]
    if fleet.api_key:
        places.append((("fleet", "api_key"), fleet.api_key))
    for path, word in places:
        if not _VARIABLE.fullmatch(word):
            raise ManifestError(
                f"{join_path(path)} is not the name of a variable",
                file=marked.file,
                line=marked.line(path),
                hint="put the secret into a variable and use its name, such as `$ENGINE_KEY`; do "
                "not write it into the manifest",
            )
    if fleet.codec.keys and fleet.codec.key_files:
        raise _make_refusal(
            marked,
            "codec",
            "`keys` and `key_files` are both set",
            "set only one of them, because the order of the keys matters",
        )


def _make_refusal(marked: MarkedData, key: str, what: str, hint: str) -> ManifestError:
    return ManifestError(what, file=marked.file, line=marked.line(("fleet", key)), hint=hint)
