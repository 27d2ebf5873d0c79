"""Thresholds of comparisons: stalled loops, topics, decisions, loops and secrets."""

from rekindle.thresholds import declare_threshold

STALL_LEAD_LINES = declare_threshold(
    6,
    "stall.lead_lines",
    "lines",
    "First open lines of a directive that state its subject; the rest is outlook.",
)
STALL_MOST_LINES = declare_threshold(
    100,
    "stall.most_lines",
    "lines",
    "Changed lines that are compared with each other; a directive with more counts as a log.",
)
STALL_SAME_LINE = declare_threshold(
    0.8,
    "stall.same_line",
    "share",
    "Similarity at which lines of two directives are the same item.",
)
STALL_SAME_HEAD = declare_threshold(
    0.75, "stall.same_head", "share", "Similarity at which two first lines ask for the same thing."
)
STALL_SAME_LEAD = declare_threshold(
    0.78,
    "stall.same_lead",
    "share",
    "Average similarity at which the first lines ask for the same thing.",
)
STALL_SAME_WAIT = declare_threshold(
    0.6,
    "stall.same_wait",
    "share",
    "Similarity at which two lines wait for the same thing; the wording of a wait changes often.",
)
STALL_TREADMILL_HEAD = declare_threshold(
    0.55,
    "stall.treadmill_head",
    "share",
    "Similarity of the first lines if both directives ask to continue without end.",
)
STALL_TREADMILL_LEAD = declare_threshold(
    0.5, "stall.treadmill_lead", "share", "Average similarity of the first lines in the same case."
)
STALL_STEM_CHARACTERS = declare_threshold(
    5,
    "stall.stem_characters",
    "characters",
    "Length of a common beginning that makes two words forms of one word.",
)
STALL_SWAP_WORDS = declare_threshold(
    3,
    "stall.swap_words",
    "words",
    "Length of a line at which one replaced word makes it another task.",
)
STALL_ALARM = declare_threshold(
    3,
    "stall.alarm",
    "count",
    "Consecutive pairs of relays without progress that make a loop stuck.",
)
STALL_TURNS = declare_threshold(
    4, "stall.turns", "count", "Longest alternation of directives that is recognized as a loop."
)
CONVERGENCE_OPTIONS = declare_threshold(
    2, "convergence.options", "count", "Number of ranked options that opens a topic."
)
CONVERGENCE_SAME_WINNER = declare_threshold(
    0.6, "convergence.same_winner", "share", "Similarity at which two names mean the same winner."
)
DECISION_SAME = declare_threshold(
    0.7, "decisions.same", "share", "Similarity at which two decisions are the same in other words."
)
DECISION_MOST = declare_threshold(
    200,
    "decisions.most",
    "count",
    "Changed decisions that are compared with each other; a list with more counts as a log.",
)
DECISION_NAMED = declare_threshold(
    0.75,
    "decisions.named",
    "share",
    "Share of a decision's words at which a line is about the same subject.",
)
DECISION_ALTERNATIVE = declare_threshold(
    0.8,
    "decisions.alternative",
    "share",
    "Similarity to a decision's subject at which an alternative is the decision itself.",
)
LOOP_SAME = declare_threshold(
    0.75, "loops.same", "share", "Similarity at which two open loops are the same in other words."
)
LOOP_NAMED = declare_threshold(
    0.75, "loops.named", "share", "Share of a loop's words at which a sentence is about it."
)
CLAIM_NAMED = declare_threshold(
    0.5,
    "brief.claim_named",
    "share",
    "Share of a commit's words in a reported change at which the commit supports it.",
)
REDACT_GUESSABLE_CHARACTERS = declare_threshold(
    20,
    "redact.guessable_characters",
    "characters",
    "Length below which a secret shows two digits of its hash instead of four.",
)
REDACT_SHORTEST = declare_threshold(
    8,
    "redact.shortest",
    "characters",
    "Length below which a text is not searched: `name=value` needs more.",
)
REDACT_ROUNDS = declare_threshold(
    4, "redact.rounds", "count", "Further searches of a text after a redaction in it."
)
