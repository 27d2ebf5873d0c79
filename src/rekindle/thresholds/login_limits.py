"""Thresholds for an agent whose CLI needs a login."""

from rekindle.thresholds import declare_threshold

LOGIN_RETRY_SECONDS = declare_threshold(
    30.0,
    "login.retry_seconds",
    "seconds",
    "Wait after a failed login before the agent is started again without an answer. Each further "
    "wait is twice as long.",
)
MAX_LOGIN_RETRY_SECONDS = declare_threshold(
    3600.0, "login.max_retry_seconds", "seconds", "Maximum wait after a failed login."
)
