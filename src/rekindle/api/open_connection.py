"""Connect to a project folder, or to a fleet without a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, overload

from rekindle.api.home import Home
from rekindle.api.operator import Operator
from rekindle.errors import UsageError

if TYPE_CHECKING:
    from rekindle.api.fleet import Fleet
    from rekindle.policy.settings.fleet_settings import CodecSettings, TlsSettings


@overload
def connect(folder: str | Path = ".", operator: Operator | None = None) -> Home: ...


@overload
def connect(
    *,
    fleet: str,
    namespace: str = "default",
    pool: str = "default",
    team: str = "",
    heartbeat_timeout: float | str = ...,
    tls: "TlsSettings | bool | None" = None,
    api_key: str = "",
    codec: "CodecSettings | None" = None,
    operator: Operator | None = None,
) -> "Fleet": ...


def connect(
    folder: str | Path = ".",
    operator: Operator | None = None,
    *,
    fleet: str = "",
    **settings: object,
) -> "Home | Fleet":
    """Open the project in a folder, or connect to the engine of a fleet.

    A connection to a fleet has the same settings as `fleet:` in rekindle.yaml. Paths are relative
    to the current folder, and `api_key` and the keys of `codec` name environment variables.

    Raises:
        ManifestMissingError: There is no rekindle.yaml in the folder or above it.
        ManifestError: A setting is not valid.
        EngineError: The engine could not be reached, or refused the connection.
    """
    if not fleet:
        if settings:
            raise UsageError(
                f"{', '.join(settings)}: only a connection to a fleet has these settings",
                hint='add `fleet="HOST:PORT"`, or write them into rekindle.yaml',
            )
        return Home(folder, operator)
    from rekindle.api.fleet import open_fleet  # noqa: PLC0415 - needs the fleet extra

    return open_fleet(fleet, operator or Operator(), settings)
