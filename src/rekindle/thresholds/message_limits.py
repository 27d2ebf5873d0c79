"""Limits for messages from people to agents."""

from rekindle.thresholds import declare_threshold

MESSAGE_CHARACTERS = declare_threshold(
    4_000,
    "message.characters",
    "characters",
    "Maximum length of a message to a running agent. Agent CLIs take about 10,000 from a hook.",
)
MESSAGES_KEPT = declare_threshold(
    20,
    "messages.kept",
    "count",
    "Number of delivered messages to keep in a snapshot. The log has all of them.",
)
MESSAGES_WAITING = declare_threshold(
    20,
    "messages.waiting",
    "count",
    "Maximum number of messages that may wait for an agent.",
)
