"""Connect to the engine, with TLS and an API key if configured, and check its namespace."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from rekindle import __version__
from rekindle.errors import EngineError
from rekindle.fleet.engine import encryption_keys
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.fleet.engine.queue_pollers import KEYS_PREFIX
from rekindle.fleet.engine.telemetry import QUIET
from rekindle.policy.settings.runtime_settings import (
    CONNECT_AGAIN_SECONDS,
    CONNECT_SECONDS,
    TEXT_BYTES,
    FleetSettings,
    TlsSettings,
)
from rekindle.system.files import durable_files

_NOT_THERE = re.compile(r"tcp connect error|dns error|deadline has elapsed")
_NOT_LET_IN = re.compile(r"Unauthenticated|PermissionDenied")
_WHY = re.compile(
    r"InvalidCertificate\((?P<certificate>\w+)|AlertReceived\((?P<alert>\w+)|(?P<key>PrivateKey\w+)"
)
"""Pattern for the problem in the TLS library's message. The rest of the message is noise."""


async def connect(
    fleet: FleetSettings,
    folder: Path,
    environ: Mapping[str, str],
    runtime: Runtime | None = None,
) -> Client:
    """Connect to the engine, check the namespace, and return the client.

    Paths in the manifest are relative to `folder`, the project folder. Without a `runtime`, no
    metrics are exported.
    """
    encrypting = encryption_keys.load_keys(fleet.codec, folder, environ)
    api_key = encryption_keys.read_secret(fleet.api_key, environ) if fleet.api_key else None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            client = await Client.connect(
                fleet.address,
                namespace=fleet.namespace,
                api_key=api_key,
                # With None, the SDK would enable TLS whenever there is an API key.
                tls=_make_tls(fleet, folder),
                data_converter=make_data_converter(encrypting, strict=fleet.codec.strict),
                runtime=runtime or _make_quiet_runtime(),
                # The identity shows the host, its version and its keys in histories and lists of
                # pollers.
                identity=_make_identity(encrypting),
                connect_timeout=timedelta(seconds=CONNECT_SECONDS),
            )
    except TimeoutError as late:
        raise _make_unreachable_error(fleet, f"no answer within {CONNECT_SECONDS:g} s") from late
    except RuntimeError as failed:  # the SDK has no specific type for these errors
        raise _make_refusal(fleet, str(failed)) from failed
    await _require_namespace(client, fleet)
    return client


async def connect_when_up(
    fleet: FleetSettings,
    folder: Path,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    runtime: Runtime | None = None,
) -> Client:
    """Connect. While the engine is down, wait, because a host may start before the engine."""
    is_told = False
    while True:
        try:
            return await connect(fleet, folder, environ, runtime)
        except EngineError as error:
            if error.cause != "unreachable":
                raise
            if not is_told:
                say(f"waiting: {error}\n  → {error.hint}")
            is_told = True
        await asyncio.sleep(CONNECT_AGAIN_SECONDS)


def _make_identity(encrypting: Sequence[encryption_keys.EncryptionKey]) -> str:
    ids = ",".join(key.id for key in encrypting)
    who = f"rekindle {__version__} {os.getpid()}@{os.uname().nodename}"
    return f"{who} {KEYS_PREFIX}{ids}" if ids else who


@cache
def _make_quiet_runtime() -> Runtime:
    return Runtime(telemetry=TelemetryConfig(logging=QUIET))


async def _require_namespace(client: Client, fleet: FleetSettings) -> None:
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=fleet.namespace),
            timeout=timedelta(seconds=CONNECT_SECONDS),
        )
    except RPCError as refused:
        if refused.status in {RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED}:
            raise _make_denied_error(fleet) from refused
        if refused.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
            raise _make_unreachable_error(
                fleet, refused.status.name.replace("_", " ").lower()
            ) from refused
        raise EngineError(
            "namespace",
            f"the engine at {fleet.address} has no namespace {fleet.namespace!r}",
            hint="correct `fleet: namespace:`, or create the namespace in the engine; for the "
            f"development server, use `rekindle fleet dev --namespace {fleet.namespace}`",
        ) from refused


def _make_tls(fleet: FleetSettings, folder: Path) -> TLSConfig | bool:
    tls = fleet.tls
    if not isinstance(tls, TlsSettings):
        return bool(tls)
    return TLSConfig(
        server_root_ca_cert=_read_file(folder, tls.ca),
        client_cert=_read_file(folder, tls.cert),
        client_private_key=_read_file(folder, tls.key),
        domain=tls.server_name or None,
    )


def _read_file(folder: Path, name: str) -> bytes | None:
    if not name:
        return None
    return durable_files.read_user_file(folder / name, TEXT_BYTES)


def _make_refusal(fleet: FleetSettings, message: str) -> EngineError:
    if _NOT_LET_IN.search(message):
        return _make_denied_error(fleet)
    if _NOT_THERE.search(message) or not fleet.tls:
        return _make_unreachable_error(fleet, "no engine answers at this address")
    problem = _WHY.search(message)
    detail = f": {problem[problem.lastgroup or 0]}" if problem else ""
    return EngineError(
        "tls",
        f"no TLS connection to the engine at {fleet.address}{detail}",
        hint="check that `fleet: tls:` names the CA that signed the engine's certificate, a "
        "`server_name` if the certificate has another name, and a `cert` and `key` that the "
        "engine accepts",
    )


def _make_denied_error(fleet: FleetSettings) -> EngineError:
    what = f"the key in {fleet.api_key}" if fleet.api_key else "connections without a key"
    return EngineError(
        "credentials",
        f"the engine at {fleet.address} refused {what}",
        hint=f"check that the key is for namespace {fleet.namespace!r} and has not expired"
        if fleet.api_key
        else "name the variable that holds the key: `fleet: api_key: $ENGINE_KEY`",
    )


def _make_unreachable_error(fleet: FleetSettings, why: str) -> EngineError:
    port = fleet.address.rpartition(":")[2]
    own = f" --port {port}" if fleet.address != FleetSettings().address else ""
    return EngineError(
        "unreachable",
        f"the engine at {fleet.address} could not be reached: {why}",
        hint=f"check that it is running (`rekindle fleet dev{own}` starts one on this host), and"
        " set `fleet: tls:` if it requires TLS",
    )
