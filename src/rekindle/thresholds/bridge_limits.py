"""Thresholds for the bridge to agents that speak the Agent Client Protocol."""

from rekindle.thresholds import declare_threshold

ACP_START_SECONDS = declare_threshold(
    120.0,
    "acp.start_seconds",
    "seconds",
    "How long an agent may take to answer the first request after its start.",
)
ACP_QUEUED_MESSAGES = declare_threshold(
    16,
    "acp.queued_messages",
    "count",
    "Number of an agent's messages that the bridge reads ahead. An agent that sends more waits.",
)
ACP_CANCEL_SECONDS = declare_threshold(
    2.0,
    "acp.cancel_seconds",
    "seconds",
    "How long the bridge waits for an agent to confirm that its turn was cancelled.",
)
ACP_CLOSE_SECONDS = declare_threshold(
    4.0,
    "acp.close_seconds",
    "seconds",
    "How long an agent may take to exit after its standard input was closed. After that, the "
    "bridge sends SIGTERM.",
)
ACP_TERM_SECONDS = declare_threshold(
    1.0,
    "acp.term_seconds",
    "seconds",
    "How long an agent may take to exit after SIGTERM. After that, the bridge sends SIGKILL.",
)
ACP_SIGN_SECONDS = declare_threshold(
    1.0,
    "acp.sign_seconds",
    "seconds",
    "Interval at which the bridge reports that an agent is thinking or that its tool prints.",
)
ACP_TEXT_CHARACTERS = declare_threshold(
    4_000,
    "acp.text_characters",
    "characters",
    "Length at which the bridge prints a text that has no line break yet, and maximum length of "
    "a text in a tool call.",
)
ACP_CLOSING_CHARACTERS = declare_threshold(
    600,
    "acp.closing_characters",
    "characters",
    "Maximum length of an agent's last text that can be an error message instead of an answer.",
)
