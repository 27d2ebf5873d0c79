"""Thresholds for hooks, and for the reports and primers that they pass on."""

from rekindle.thresholds import declare_threshold

HOOK_SECONDS = declare_threshold(
    10,
    "hooks.seconds",
    "seconds",
    "Timeout of a hook in a CLI's settings; the hook itself gives up earlier.",
)
HOOK_CHARACTERS = declare_threshold(
    10_000,
    "hooks.characters",
    "characters",
    "Maximum length of the text that a CLI accepts from a hook, in UTF-16 units; a longer primer"
    " is shortened.",
)
HOOK_CONTEXT_TOKENS = declare_threshold(
    10_000,
    "hooks.context_tokens",
    "tokens",
    "Maximum length of a hook's text that Codex is configured to accept, at four bytes per token.",
)
HOOK_PROMPT_CHARACTERS = declare_threshold(
    8_000,
    "hooks.prompt_characters",
    "characters",
    "Maximum length of a recorded prompt, which is repeated after a compaction.",
)
PRIME_LOCK_SECONDS = declare_threshold(
    3.0,
    "hooks.prime_lock_seconds",
    "seconds",
    "Maximum time that a session's primer waits for the agent's lock.",
)
SAME_START_SECONDS = declare_threshold(
    5.0,
    "hooks.same_start_seconds",
    "seconds",
    "Maximum time between two reports of a session's start, end or compaction that count as one; "
    "hooks may be installed at several levels.",
)
REPORTS_KEPT = declare_threshold(
    500,
    "hooks.reports_kept",
    "count",
    "Number of recent hook reports to compare with a new report, to find duplicates.",
)
HOOK_WORD_CHARACTERS = declare_threshold(
    80,
    "hooks.word_characters",
    "characters",
    "Maximum length of a word kept from a hook's report.",
)
