"""The secrets that a supervisor sends to the gateway of a launch."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.launches.launch_credentials import ModelKey


class GatewaySetup(msgspec.Struct, frozen=True):
    """The gateway's secrets, which the supervisor sends through a pipe."""

    program: str
    request: str
    """What the helper reads from standard input."""
    environment: Mapping[str, str]
    """Environment of the helper."""
    keys: Mapping[str, ModelKey]
    expires: datetime | None
