"""Connect to a project folder, or to a fleet without a folder."""

from difflib import get_close_matches
from pathlib import Path
from types import EllipsisType
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
    folder: str | Path | EllipsisType = ...,
    operator: Operator | None = None,
    *,
    fleet: object = ...,
    **settings: object,
) -> "Home | Fleet":
    """Open the project in a folder, or connect to the engine of a fleet.

    A connection to a fleet has the same settings as `fleet:` in rekindle.yaml. Paths are relative
    to the current folder, and `api_key` and the keys of `codec` name environment variables.

    Raises:
        UsageError: An argument is not valid, or does not belong to this kind of connection.
        ManifestMissingError: There is no rekindle.yaml in the folder or above it.
        ManifestError: A setting is not valid.
        EngineError: The engine could not be reached, or refused the connection.
    """
    if operator is not None and not isinstance(operator, Operator):
        hint = 'use `operator=rekindle.Operator(by="ann")`, or leave it out'
        raise UsageError(f"operator={operator!r} is not an Operator", hint=hint)
    if fleet is ...:
        if settings:
            raise _make_settings_error(settings)
        return Home("." if folder is ... else folder, operator)
    if folder is not ...:
        hint = "leave out `folder` to connect to a fleet, or `fleet` to open a project"
        raise UsageError("a connection to a fleet has no folder", hint=hint)
    if not isinstance(fleet, str) or not fleet:
        hint = 'use the host and port of the engine, such as `fleet="127.0.0.1:7233"`'
        raise UsageError(f"fleet={fleet!r} is not the address of an engine", hint=hint)
    from rekindle.api.fleet import open_fleet  # noqa: PLC0415 - needs the fleet extra

    return open_fleet(fleet, operator or Operator(), settings)


def _make_settings_error(settings: dict[str, object]) -> UsageError:
    for name in settings:
        if like := get_close_matches(name, ["folder", "operator", "fleet"], n=1):
            return UsageError(f"unknown argument {name!r}", hint=f"did you mean `{like[0]}`?")
    return UsageError(
        f"{', '.join(settings)}: only a connection to a fleet has these settings",
        hint='add `fleet="HOST:PORT"`, or write them into rekindle.yaml',
    )
