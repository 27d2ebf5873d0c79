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
