"""Thresholds for similarity: stalled loops, topics, decisions, open loops and secrets."""

from rekindle.thresholds import declare_threshold

STALL_LEAD_LINES = declare_threshold(
    6,
    "stall.lead_lines",
    "lines",
    "Number of open lines at the start of a directive that count as its subject. Later lines are "
    "ignored.",
)
STALL_MOST_LINES = declare_threshold(
    100,
    "stall.most_lines",
    "lines",
    "Maximum number of changed lines to compare. A directive with more changes counts as a log.",
)
STALL_STUCK_FROM = declare_threshold(
    0.425,
    "stall.stuck_from",
    "share",
    "Minimum probability, according to the fitted weights, for two relays to count as stuck.",
)
STALL_LINE_CHARACTERS = declare_threshold(
    2_000,
    "stall.line_characters",
    "characters",
    "Maximum length of a line in a relay that is compared. The rest of the line is ignored.",
)
STALL_FREE_LINES = declare_threshold(
    40,
    "stall.free_lines",
    "lines",
    "Number of lines at the start and the end of a relay without a directive that are compared.",
)
STALL_SAME_LINE = declare_threshold(
    0.8,
    "stall.same_line",
    "share",
    "Minimum similarity for lines in two directives to count as the same item.",
)
STALL_STEM_CHARACTERS = declare_threshold(
    5,
    "stall.stem_characters",
    "characters",
    "Minimum length of a common prefix for two words to count as forms of the same word.",
)
STALL_SWAP_WORDS = declare_threshold(
    3,
    "stall.swap_words",
    "words",
    "Minimum length of a line that becomes a different task if a single word is replaced.",
)
STALL_ALARM = declare_threshold(
    3,
    "stall.alarm",
    "count",
    "Number of consecutive relay pairs without progress after which an agent is considered stuck.",
)
STALL_TURNS = declare_threshold(
    4,
    "stall.turns",
    "count",
    "Maximum length of a repeating sequence of directives that Rekindle recognizes.",
)
OPINION_WORDS = declare_threshold(
    4,
    "stall.opinion_words",
    "words",
    "Minimum length of the quotation from the relay in a second opinion.",
)
OPINION_CYCLES = declare_threshold(
    4,
    "stall.opinion_cycles",
    "count",
    "Number of cycles without any change after which reported progress needs a second opinion.",
)
PROGRESS_FREQUENT_OF = declare_threshold(
    8,
    "progress.frequent_of",
    "count",
    "Number of recent launches or cycles in which Rekindle looks for files that nearly always "
    "change.",
)
PROGRESS_FREQUENT = declare_threshold(
    0.75,
    "progress.frequent",
    "share",
    "Share of the recent launches or cycles from which a file counts as one that nearly always "
    "changes, such as a journal.",
)
CONVERGENCE_OPTIONS = declare_threshold(
    2,
    "convergence.options",
    "count",
    "Minimum number of ranked options for a list to open a topic.",
)
CONVERGENCE_SAME_WINNER = declare_threshold(
    0.6,
    "convergence.same_winner",
    "share",
    "Minimum similarity for two names to count as the same winner.",
)
DECISION_SAME = declare_threshold(
    0.7,
    "decisions.same",
    "share",
    "Minimum similarity for two decisions to count as the same decision in different words.",
)
DECISION_MOST = declare_threshold(
    200,
    "decisions.most",
    "count",
    "Maximum number of changed decisions to compare. A longer list counts as a log.",
)
DECISION_NAMED = declare_threshold(
    0.75,
    "decisions.named",
    "share",
    "Minimum share of a decision's words that a line must contain to count as being about the "
    "same subject.",
)
DECISION_ALTERNATIVE = declare_threshold(
    0.8,
    "decisions.alternative",
    "share",
    "Minimum similarity to a decision's subject for an alternative to count as the decision "
    "itself.",
)
LOOP_SAME = declare_threshold(
    0.75,
    "loops.same",
    "share",
    "Minimum similarity for two open loops to count as the same loop in different words.",
)
LOOP_NAMED = declare_threshold(
    0.75,
    "loops.named",
    "share",
    "Minimum share of a loop's words that a sentence must contain to count as being about the "
    "loop.",
)
CLAIM_NAMED = declare_threshold(
    0.5,
    "brief.claim_named",
    "share",
    "Minimum share of a commit's words that must appear in a reported change for the commit to "
    "count as evidence.",
)
REDACT_GUESSABLE_CHARACTERS = declare_threshold(
    20,
    "redact.guessable_characters",
    "characters",
    "Length below which a secret's placeholder shows two digits of its hash instead of four.",
)
REDACT_SHORTEST = declare_threshold(
    8,
    "redact.shortest",
    "characters",
    "Length below which a text is not searched for secrets.",
)
REDACT_ROUNDS = declare_threshold(
    4,
    "redact.rounds",
    "count",
    "Maximum number of times to search a text again after redacting a secret.",
)
