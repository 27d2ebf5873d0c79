"""Limits for sessions that a person started and Rekindle continues, and for exported agents."""

from rekindle.thresholds import declare_threshold

SESSIONS_SEARCHED = declare_threshold(
    200,
    "keep.sessions_searched",
    "count",
    "Newest transcripts of each CLI that `rekindle keep` looks at.",
)
SESSIONS_LISTED = declare_threshold(
    8,
    "keep.sessions_listed",
    "count",
    "Sessions that `rekindle keep` lists if it cannot choose one.",
)
KEEP_CLOSE_SECONDS = declare_threshold(
    60.0,
    "keep.close_seconds",
    "seconds",
    "How long `rekindle keep` waits for a session that it has asked to exit.",
)
KEEP_POLL_SECONDS = declare_threshold(
    0.5,
    "keep.poll_seconds",
    "seconds",
    "Interval at which `rekindle keep` checks whether a session has finished its work.",
)
KEEP_QUIET_SECONDS = declare_threshold(
    10.0,
    "keep.quiet_seconds",
    "seconds",
    "How long a CLI that writes tool calls late must have written nothing to count as idle.",
)
KEEP_TASK_CHARACTERS = declare_threshold(
    4000,
    "keep.task_characters",
    "characters",
    "Length of a session's first request that `rekindle keep` writes to PROMPT.md.",
)
CLAUDE_PROJECT_CHARACTERS = declare_threshold(
    200,
    "keep.claude_project_characters",
    "characters",
    "Longest name of a project's folder in Claude Code, which adds a hash to longer names.",
)
EXPORT_READ_BYTES = declare_threshold(
    1024 * 1024,
    "keep.export_read_bytes",
    "bytes",
    "How much of an exported file `rekindle import` reads at once.",
)
EXPORT_BYTES = declare_threshold(
    2 * 1024 * 1024 * 1024,
    "keep.export_bytes",
    "bytes",
    "Largest file of an agent that `rekindle export` reads.",
)
