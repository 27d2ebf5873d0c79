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
    "How long before the keys expire the gateway asks the helper again. For keys with a short "
    "life, this is a quarter of their life.",
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
