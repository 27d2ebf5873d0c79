"""Thresholds for credential helpers, and for the gateway that adds their keys."""

from rekindle.thresholds import declare_threshold

CREDENTIAL_SECONDS = declare_threshold(
    20.0,
    "credentials.helper_seconds",
    "seconds",
    "Timeout for a host's credential helper.",
)
CREDENTIAL_BYTES = declare_threshold(
    65_536,
    "credentials.helper_bytes",
    "bytes",
    "Maximum output of a credential helper.",
)
KEY_REFRESH_SECONDS = declare_threshold(
    60.0,
    "credentials.refresh_seconds",
    "seconds",
    "How long before the keys expire the gateway asks the helper again.",
)
KEY_REFRESH_SHARE = declare_threshold(
    0.25,
    "credentials.refresh_share",
    "share",
    "The same as a share of the keys' life. The shorter time counts.",
)
KEY_RETRY_SECONDS = declare_threshold(
    5.0,
    "credentials.retry_seconds",
    "seconds",
    "Minimum time between two attempts to renew keys, if the helper fails.",
)
GATEWAY_IDLE_SECONDS = declare_threshold(
    60.0,
    "credentials.gateway_idle_seconds",
    "seconds",
    "How long the gateway waits for the next piece of a request from the sandbox.",
)
GATEWAY_LINE_BYTES = declare_threshold(
    1024,
    "credentials.gateway_line_bytes",
    "bytes",
    "Maximum length of a line between the pieces of a request to the gateway.",
)
GATEWAY_EXIT_SECONDS = declare_threshold(
    10.0,
    "credentials.gateway_exit_seconds",
    "seconds",
    "How long a gateway may take to end its helper and exit, before the supervisor kills it.",
)
GATEWAY_DRAIN_SECONDS = declare_threshold(
    1.0,
    "credentials.gateway_drain_seconds",
    "seconds",
    "How long the gateway waits for the rest of a request after it has answered.",
)
GATEWAY_DRAIN_PIECES = declare_threshold(
    1024,
    "credentials.gateway_drain_pieces",
    "count",
    "Maximum number of pieces that the gateway reads from a request after it has answered.",
)
