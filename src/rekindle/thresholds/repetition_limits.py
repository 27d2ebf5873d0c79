"""Thresholds for agents that repeat themselves within a session."""

from rekindle.thresholds import declare_threshold

REPEATS_TOLD = declare_threshold(
    6,
    "repetition.told",
    "count",
    "Number of identical calls, patterns of calls or messages in a row after which Rekindle tells "
    "the agent that it repeats itself.",
)
REPEATS_MOST = declare_threshold(
    9,
    "repetition.most",
    "count",
    "Number of identical calls, patterns of calls or messages in a row after which a fresh session "
    "takes over.",
)
COMPACTIONS_TOLD = declare_threshold(
    3,
    "repetition.compactions_told",
    "count",
    "Number of compactions with hardly any work between them after which Rekindle reports them.",
)
COMPACTIONS_MOST = declare_threshold(
    4,
    "repetition.compactions_most",
    "count",
    "Number of compactions with hardly any work between them after which a fresh session takes "
    "over.",
)
COMPACTION_CALLS = declare_threshold(
    2,
    "repetition.compaction_calls",
    "count",
    "Maximum number of tool calls between two compactions that still counts as hardly any work.",
)
REPEATED_CALLS = declare_threshold(
    3,
    "repetition.pattern_calls",
    "count",
    "Maximum number of different calls in a pattern that an agent repeats, such as A B A B.",
)
WAITING_SECONDS = declare_threshold(
    10.0,
    "repetition.waiting_seconds",
    "seconds",
    "Duration from which a successful tool call counts as waiting, which is not a repetition.",
)
NAMED_WAIT_SECONDS = declare_threshold(
    1.0,
    "repetition.named_wait_seconds",
    "seconds",
    "Duration from which a tool call whose input names a wait, such as `sleep`, counts as waiting.",
)
PAUSE_SECONDS = declare_threshold(
    60.0,
    "repetition.pause_seconds",
    "seconds",
    "Pause before a tool call or prompt from which it does not repeat an earlier one. The agent or "
    "a scheduler checks something regularly.",
)
REPEATED_CALLS_KEPT = declare_threshold(
    64,
    "repetition.calls_kept",
    "count",
    "Number of tool calls that Rekindle remembers while it waits for their results.",
)
