"""Thresholds for comparisons: stalled loops, topics, decisions, loops and secrets."""

from rekindle.thresholds import declare_threshold

STALL_LEAD_LINES = declare_threshold(
    6,
    "stall.lead_lines",
    "lines",
    "Number of open lines at the start of a directive that count as its subject; later lines are "
    "only an outlook.",
)
STALL_MOST_LINES = declare_threshold(
    100,
    "stall.most_lines",
    "lines",
    "Maximum number of changed lines to compare with each other; a directive with more counts as "
    "a log.",
)
STALL_SAME_LINE = declare_threshold(
    0.8,
    "stall.same_line",
    "share",
    "Minimum similarity at which lines of two directives count as the same item.",
)
STALL_SAME_HEAD = declare_threshold(
    0.75,
    "stall.same_head",
    "share",
    "Minimum similarity at which two first lines count as the same request.",
)
STALL_SAME_LEAD = declare_threshold(
    0.78,
    "stall.same_lead",
    "share",
    "Minimum average similarity at which the first lines of two directives count as the same"
    " request.",
)
STALL_SAME_WAIT = declare_threshold(
    0.6,
    "stall.same_wait",
    "share",
    "Minimum similarity at which two lines count as waiting for the same thing; it is low, "
    "because the wording of a wait often changes.",
)
STALL_TREADMILL_HEAD = declare_threshold(
    0.55,
    "stall.treadmill_head",
    "share",
    "Minimum similarity of the first lines at which two open-ended directives count as the same "
    "request.",
)
STALL_TREADMILL_LEAD = declare_threshold(
    0.5,
    "stall.treadmill_lead",
    "share",
    "Minimum average similarity of the first lines at which two open-ended directives count as "
    "the same request.",
)
STALL_STEM_CHARACTERS = declare_threshold(
    5,
    "stall.stem_characters",
    "characters",
    "Minimum length of a common prefix at which two words count as forms of the same word.",
)
STALL_SWAP_WORDS = declare_threshold(
    3,
    "stall.swap_words",
    "words",
    "Minimum length of a line in which a single replaced word makes a different task.",
)
STALL_ALARM = declare_threshold(
    3,
    "stall.alarm",
    "count",
    "Number of consecutive pairs of relays without progress after which a loop counts as stuck.",
)
STALL_TURNS = declare_threshold(
    4,
    "stall.turns",
    "count",
    "Maximum number of alternating directives that Rekindle recognizes as a loop.",
)
CONVERGENCE_OPTIONS = declare_threshold(
    2, "convergence.options", "count", "Minimum number of ranked options that open a topic."
)
CONVERGENCE_SAME_WINNER = declare_threshold(
    0.6,
    "convergence.same_winner",
    "share",
    "Minimum similarity at which two names mean the same winner.",
)
DECISION_SAME = declare_threshold(
    0.7,
    "decisions.same",
    "share",
    "Minimum similarity at which two decisions count as one decision in different words.",
)
DECISION_MOST = declare_threshold(
    200,
    "decisions.most",
    "count",
    "Maximum number of changed decisions to compare with each other; a longer list counts as a "
    "log.",
)
DECISION_NAMED = declare_threshold(
    0.75,
    "decisions.named",
    "share",
    "Minimum share of a decision's words that a line must contain to count as about the same "
    "subject.",
)
DECISION_ALTERNATIVE = declare_threshold(
    0.8,
    "decisions.alternative",
    "share",
    "Minimum similarity to a decision's subject at which an alternative counts as the decision "
    "itself.",
)
LOOP_SAME = declare_threshold(
    0.75,
    "loops.same",
    "share",
    "Minimum similarity at which two open loops count as one loop in different words.",
)
LOOP_NAMED = declare_threshold(
    0.75,
    "loops.named",
    "share",
    "Minimum share of a loop's words that a sentence must contain to count as about the loop.",
)
CLAIM_NAMED = declare_threshold(
    0.5,
    "brief.claim_named",
    "share",
    "Minimum share of a commit's words that a reported change must contain for the commit to "
    "support it.",
)
REDACT_GUESSABLE_CHARACTERS = declare_threshold(
    20,
    "redact.guessable_characters",
    "characters",
    "Length below which a secret is shown with two digits of its hash instead of four.",
)
REDACT_SHORTEST = declare_threshold(
    8,
    "redact.shortest",
    "characters",
    "Minimum length of a text to search for secrets; `name=value` is longer.",
)
REDACT_ROUNDS = declare_threshold(
    4,
    "redact.rounds",
    "count",
    "Maximum number of times a text is searched again after a secret in it was redacted.",
)
