"""Thresholds for the proposals of agents."""

from rekindle.thresholds import declare_threshold

NOTES_A_RELAY = declare_threshold(
    30,
    "proposals.notes_a_relay",
    "count",
    "Maximum number of proposed decisions and failed approaches that one relay takes up.",
)
PROPOSALS_KEPT = declare_threshold(
    200,
    "proposals.kept",
    "count",
    "Number of open proposals that a snapshot of the log keeps.",
)
FAILED_CHARACTERS = declare_threshold(
    1_500,
    "proposals.failed_characters",
    "characters",
    "Maximum length of the failed approaches in a primer that is too long, and after a compaction.",
)
ASK_SECONDS = declare_threshold(
    45,
    "mcp.ask_seconds",
    "seconds",
    "Default time that `ask_person` waits for an answer. Codex ends a tool call after 60 seconds.",
)
ASK_WAIT_SECONDS = declare_threshold(
    540,
    "mcp.ask_wait_seconds",
    "seconds",
    "Longest time that `ask_person` waits for an answer.",
)
ASK_POLL_SECONDS = declare_threshold(
    0.5, "mcp.ask_poll_seconds", "seconds", "Seconds between checks for the answer to a question."
)
OPTIONS = declare_threshold(
    4, "mcp.options", "count", "Maximum number of answers that an agent suggests for a question."
)
OPTION_CHARACTERS = declare_threshold(
    60, "mcp.option_characters", "characters", "Maximum length of a suggested answer."
)
ASKED_OPEN = declare_threshold(
    5, "mcp.asked_open", "count", "Maximum number of an agent's own questions that are open."
)
SEARCH_HITS = declare_threshold(
    20, "mcp.search_hits", "count", "Maximum number of results of the tool `search`."
)
MESSAGE_BYTES = declare_threshold(
    32 * 1024 * 1024, "mcp.message_bytes", "bytes", "Longest message that the MCP server parses."
)
RESULT_CHARACTERS = declare_threshold(
    20_000, "mcp.result_characters", "characters", "Maximum length of a tool's result."
)
CALLS_AT_ONCE = declare_threshold(
    16, "mcp.calls_at_once", "count", "Number of tool calls that the MCP server runs at once."
)
CALLS_END_SECONDS = declare_threshold(
    5.0,
    "mcp.calls_end_seconds",
    "seconds",
    "Time for running tool calls to finish after the CLI has closed the connection.",
)
