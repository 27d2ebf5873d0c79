"""Credentials for one launch, as a host's credential helper prints them.

    {"env": {"NAME": "value"},
     "keys": {"api.example.com": {"header": "x-api-key", "value": "…"}},
     "expires": "2026-01-31T12:00:00Z"}

All keys are optional. Error messages never contain any of the helper's output.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from rekindle.errors import CredentialsError

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[1-9][0-9]{0,4})?")
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FRAMING = frozenset(
    ("host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade")
)
"""Headers that describe the message itself, so that no key can be in them."""
_OWN_PREFIX = "REKINDLE_"


class ModelKey(msgspec.Struct, frozen=True):
    """A key for one host: the HTTP header that contains it, and the header's value."""

    header: str
    value: str

    def __repr__(self) -> str:
        return f"ModelKey({self.header!r}, …)"


class LaunchCredentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    env: Mapping[str, str] = {}
    """Variables for the launch, which the agent can read."""
    keys: Mapping[str, ModelKey] = {}
    """Keys by host, as `name` or `name:port`. They never enter the sandbox."""
    expires: datetime | None = None
    """When the keys stop working; None if they do not."""

    def __repr__(self) -> str:
        return f"LaunchCredentials(env={sorted(self.env)}, keys={sorted(self.keys)})"


class CredentialsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The launch for which a helper is asked, as it reads it from standard input."""

    agent: str
    team: str
    harness: str
    repository: str
    """Git remote of the agent's work, without a login; empty if it has none."""
    launch: str
    """Id of the launch."""


class HostCredentials(msgspec.Struct, frozen=True):
    """How a launch on a host of a fleet gets its credentials."""

    program: str = ""
    """The host's credential helper; empty if the host has none."""
    team: str = ""
    repository: str = ""


def parse_credentials(data: bytes, program: str, now: datetime) -> LaunchCredentials:
    """Parse a helper's output.

    Raises:
        CredentialsError: The output is not valid, or has already expired.
    """
    try:
        parsed = msgspec.json.decode(data, type=LaunchCredentials)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # The decoder's own message could quote a part of a key.
        raise CredentialsError(program, "printed something else than the expected JSON") from None
    for name, value in parsed.env.items():
        if not _VARIABLE.fullmatch(name) or name.startswith(_OWN_PREFIX) or "\0" in value:
            raise CredentialsError(program, "printed a variable that cannot be set")
    _check_keys(program, parsed.keys)
    if parsed.expires is None:
        return parsed
    if parsed.expires.tzinfo is None:
        raise CredentialsError(program, "printed `expires` without a time zone")
    try:
        expires = parsed.expires.astimezone(UTC)
    except OverflowError:
        words = "printed a time in `expires` that is not in the years 1 to 9999 in UTC"
        raise CredentialsError(program, words) from None
    if expires <= now:
        raise CredentialsError(program, "printed credentials that have already expired")
    return msgspec.structs.replace(parsed, expires=expires)


def _check_keys(program: str, keys: Mapping[str, ModelKey]) -> None:
    for host, key in keys.items():
        port = host.partition(":")[2]
        if not _HOST.fullmatch(host) or int(port or 0) > _LAST_PORT:
            raise CredentialsError(
                program, "printed a key for something else than a host, such as api.example.com"
            )
        if not _HEADER.fullmatch(key.header) or key.header.lower() in _FRAMING:
            raise CredentialsError(program, f"printed a header for {host} that cannot be sent")
        if not _VALUE.fullmatch(key.value):
            raise CredentialsError(program, f"printed a value for {host} that cannot be sent")
