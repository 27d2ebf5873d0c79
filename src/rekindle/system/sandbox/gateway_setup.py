"""The secrets that a supervisor sends to the gateway of a launch."""

import os
from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.launches.launch_credentials import ModelKey

_BYTES = "latin-1"


class GatewaySetup(msgspec.Struct, frozen=True):
    """The gateway's secrets, which the supervisor sends through a pipe."""

    program: str
    request: str
    """What the helper reads from standard input."""
    environment: Mapping[str, str]
    """Environment of the helper, as `pack_environment` returns it."""
    keys: Mapping[str, ModelKey]
    expires: datetime | None


def pack_environment(variables: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return variables with each byte as one character, because JSON contains only valid text."""
    return {name.decode(_BYTES): value.decode(_BYTES) for name, value in variables.items()}


def unpack_environment(packed: Mapping[str, str]) -> dict[str, str]:
    """Return the variables as `os.environ` has them."""
    return {
        os.fsdecode(name.encode(_BYTES)): os.fsdecode(value.encode(_BYTES))
        for name, value in packed.items()
    }
