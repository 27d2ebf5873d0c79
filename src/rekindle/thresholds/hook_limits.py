"""Thresholds for hooks, their reports and their primers."""

from rekindle.thresholds import declare_threshold

HOOK_SECONDS = declare_threshold(
    10,
    "hooks.seconds",
    "seconds",
    "Timeout for a hook in the CLI's settings. The hook itself gives up earlier.",
)
GATE_LEAST_SECONDS = declare_threshold(
    5.0, "gate.least_seconds", "seconds", "Minimum time that a call waits for a person's approval."
)
GATE_MOST_SECONDS = declare_threshold(
    600.0,
    "gate.most_seconds",
    "seconds",
    "Maximum time that a call waits for a person's approval. The timeout in the CLI's settings is "
    "twice as long as the wait.",
)
GATE_MARGIN_SECONDS = declare_threshold(
    3.0,
    "gate.margin_seconds",
    "seconds",
    "Time at the end of the wait in which the supervisor no longer passes on an approval, because "
    "the gate could give up at the same moment. Such an approval counts for the next cycle.",
)
GATE_SILENCE_SECONDS = declare_threshold(
    10.0,
    "gate.silence_seconds",
    "seconds",
    "Time without a sign of life after which a waiting gate counts as dead.",
)
GATE_REQUESTS = declare_threshold(
    50,
    "gate.requests",
    "count",
    "Maximum number of calls per launch that can wait for approval. More are refused.",
)
GATE_REQUEST_BYTES = declare_threshold(
    4 * 1024 * 1024 + 64,
    "gate.request_bytes",
    "bytes",
    "Maximum size of a call that waits for approval. A longer call is refused.",
)
HOOK_CHARACTERS = declare_threshold(
    10_000,
    "hooks.characters",
    "characters",
    "Maximum length of the text that a CLI accepts from a hook, in UTF-16 code units. A longer "
    "primer is shortened.",
)
HOOK_CONTEXT_TOKENS = declare_threshold(
    10_000,
    "hooks.context_tokens",
    "tokens",
    "Maximum length of a hook's output in Rekindle's configuration for Codex, at four bytes per "
    "token.",
)
HOOK_PROMPT_CHARACTERS = declare_threshold(
    8_000,
    "hooks.prompt_characters",
    "characters",
    "Maximum length of a recorded prompt. Rekindle repeats the prompt after a compaction.",
)
PRIME_LOCK_SECONDS = declare_threshold(
    3.0,
    "hooks.prime_lock_seconds",
    "seconds",
    "Maximum time that a hook waits for the agent's lock before it prints a primer.",
)
SAME_START_SECONDS = declare_threshold(
    5.0,
    "hooks.same_start_seconds",
    "seconds",
    "Maximum time between two reports of the same session start, end or compaction. Duplicates "
    "occur if hooks are installed at several levels.",
)
REPORTS_KEPT = declare_threshold(
    500,
    "hooks.reports_kept",
    "count",
    "Number of recent hook reports to search for duplicates of a new report.",
)
HOOK_WORD_CHARACTERS = declare_threshold(
    80,
    "hooks.word_characters",
    "characters",
    "Maximum length of a word that Rekindle keeps from a hook report.",
)
PLUGIN_COMMAND_SECONDS = declare_threshold(
    120,
    "hooks.plugin_command_seconds",
    "seconds",
    "Timeout for a command of an agent CLI that installs, lists or removes the plugin.",
)
