"""Thresholds of comparisons: stalled loops, topics, decisions, loops and secrets."""

from rekindle.thresholds import declare_threshold

STALL_LEAD_LINES = declare_threshold(
    6,
    "stall.lead_lines",
    "lines",
    "First open lines of a directive that say what it is about; the rest is outlook.",
)
STALL_MOST_LINES = declare_threshold(
    100,
    "stall.most_lines",
    "lines",
    "Changed lines that are compared with each other; a directive with more is a log.",
)
STALL_SAME_LINE = declare_threshold(
    0.8,
    "stall.same_line",
    "share",
    "Likeness from which lines of two directives are the same item.",
)
STALL_SAME_HEAD = declare_threshold(
    0.75, "stall.same_head", "share", "Likeness from which two first lines ask for the same."
)
STALL_SAME_LEAD = declare_threshold(
    0.78,
    "stall.same_lead",
    "share",
    "Average likeness from which the first lines ask for the same.",
)
STALL_SAME_WAIT = declare_threshold(
    0.6,
    "stall.same_wait",
    "share",
    "Likeness from which two lines wait for the same; the wording of a wait changes often.",
)
STALL_TREADMILL_HEAD = declare_threshold(
    0.55,
    "stall.treadmill_head",
    "share",
    "Likeness of the first lines if both directives ask to continue without end.",
)
STALL_TREADMILL_LEAD = declare_threshold(
    0.5, "stall.treadmill_lead", "share", "Average likeness of the first lines in the same case."
)
STALL_STEM_CHARACTERS = declare_threshold(
    5,
    "stall.stem_characters",
    "characters",
    "Common beginning from which two words are forms of one word.",
)
STALL_SWAP_WORDS = declare_threshold(
    3,
    "stall.swap_words",
    "words",
    "Length of a line from which one replaced word makes it another task.",
)
STALL_ALARM = declare_threshold(
    3, "stall.alarm", "count", "Pairs of relays in a row without a step that make a loop stuck."
)
STALL_TURNS = declare_threshold(
    4, "stall.turns", "count", "Alternating directives that are still recognized as a loop."
)
CONVERGENCE_OPTIONS = declare_threshold(
    2, "convergence.options", "count", "Ranked options that open a topic."
)
CONVERGENCE_SAME_WINNER = declare_threshold(
    0.6, "convergence.same_winner", "share", "Likeness from which two names mean the same winner."
)
DECISION_SAME = declare_threshold(
    0.7, "decisions.same", "share", "Likeness from which two decisions are one in other words."
)
DECISION_MOST = declare_threshold(
    200,
    "decisions.most",
    "count",
    "Changed decisions that are compared with each other; a list with more is a log.",
)
DECISION_NAMED = declare_threshold(
    0.75,
    "decisions.named",
    "share",
    "Share of a decision's words from which a line is about the same subject.",
)
DECISION_ALTERNATIVE = declare_threshold(
    0.8,
    "decisions.alternative",
    "share",
    "Likeness to a decision's subject from which an alternative is what was decided.",
)
LOOP_SAME = declare_threshold(
    0.75, "loops.same", "share", "Likeness from which two open loops are one in other words."
)
LOOP_NAMED = declare_threshold(
    0.75, "loops.named", "share", "Share of a loop's words from which a sentence is about it."
)
CLAIM_NAMED = declare_threshold(
    0.5,
    "brief.claim_named",
    "share",
    "Share of a commit's words in a reported change from which the commit supports it.",
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
    4, "redact.rounds", "count", "Searches of a text after something in it was redacted."
)
