"""Thresholds for the quota that agents share."""

from rekindle.thresholds import declare_threshold

QUOTA_STEP_PERCENT = declare_threshold(
    1.0, "quota.step", "percent", "Change of a quota window's usage that is recorded."
)
QUOTA_SEEN_SECONDS = declare_threshold(
    60.0,
    "quota.seen_seconds",
    "seconds",
    "Interval at which the time of an unchanged quota report is stored.",
)
TURN_PERCENT = declare_threshold(
    0.5,
    "quota.turn",
    "percent",
    "Usage of a quota window that is kept free for the current turn of each working agent.",
)
PACE_HEAD_START = declare_threshold(
    0.05,
    "quota.head_start",
    "share",
    "Part of a quota window that agents may use before its time, if they share an account.",
)
PACE_MEMORY_HOURS = declare_threshold(
    24.0, "quota.memory", "hours", "How long an idle agent keeps its share of an account."
)
WEIGHT_HIGH = declare_threshold(
    2.0, "quota.weight_high", "count", "Shares of an agent with `priority: high`."
)
WEIGHT_LOW = declare_threshold(
    0.5, "quota.weight_low", "count", "Shares of an agent with `priority: low`."
)
WORKING_SECONDS = declare_threshold(
    600.0,
    "quota.working_seconds",
    "seconds",
    "How long an agent counts as working after its last entry in the ledger.",
)
LEDGER_DAYS = declare_threshold(
    32, "quota.ledger_days", "days", "How long an agent's spending stays in its ledger."
)
PACE_KEPT = declare_threshold(
    0.07,
    "quota.kept",
    "share",
    "Part of a quota window that an agent leaves to other agents if it has used its share. It "
    "leaves twice as much if it has used two shares.",
)
PACE_KEPT_MOST = declare_threshold(
    0.28, "quota.kept_most", "share", "Largest part of a quota window that an agent leaves."
)
PACE_RELEASE = declare_threshold(
    0.1,
    "quota.release",
    "share",
    "Last part of a quota window's time, in which agents may use a part of what they left.",
)
PACE_YIELD = declare_threshold(
    0.05,
    "quota.yield",
    "share",
    "Part of a quota window that an agent leaves to agents with work which have used less.",
)
LEDGER_SECONDS = declare_threshold(
    60.0,
    "quota.ledger_seconds",
    "seconds",
    "Interval at which an agent's ledger is updated, and at which a waiting agent asks again.",
)
