"""Thresholds for texts: transcripts, summaries, briefs, primers and single lines."""

from rekindle.thresholds import declare_threshold

LINE_LIMIT = declare_threshold(
    2_000, "text.line_characters", "characters", "Maximum length of a loop's text or of a reason."
)
LOOP_ID_CHARACTERS = declare_threshold(
    200, "loops.id_characters", "characters", "Maximum length of a loop's id."
)
AUTHOR_CHARACTERS = declare_threshold(
    40,
    "audit.author_characters",
    "characters",
    "Maximum length of an author's name in an audit trail commit.",
)
CONSENT_VALUE_CHARACTERS = declare_threshold(
    120,
    "trust.value_characters",
    "characters",
    "Maximum length of a changed setting to show in full. If it is longer, only the difference "
    "is shown.",
)
CONSENT_CONTEXT_CHARACTERS = declare_threshold(
    30,
    "trust.context_characters",
    "characters",
    "Number of characters to show before and after the difference in a long setting.",
)
CONSENT_SHOWN_CHARACTERS = declare_threshold(
    4000,
    "trust.shown_characters",
    "characters",
    "Maximum length of a value in the trust prompt. If a value is longer, Rekindle does not "
    "prompt.",
)
UNTIL_LINES = declare_threshold(
    30,
    "loop.until_lines",
    "count",
    "Number of lines to pass to the next cycle from the end of a failed `until:` command's output.",
)
UNTIL_CHARACTERS = declare_threshold(
    2_000,
    "loop.until_characters",
    "characters",
    "Maximum number of characters to pass to the next cycle from the end of a failed `until:` "
    "command's output.",
)
EXCERPT_WORDS = declare_threshold(
    24, "search.excerpt_words", "count", "Number of words in the excerpt of a search result."
)
TEXT_CHARACTERS = declare_threshold(
    8_000, "transcript.text_characters", "characters", "Maximum length of a message in a turn."
)
SHOWN_CHARACTERS = declare_threshold(
    2_000,
    "transcript.shown_characters",
    "characters",
    "Maximum length of a tool's output in a turn. Longer output is cut in the middle.",
)
SHOWN_HEAD_SHARE = declare_threshold(
    0.375,
    "transcript.shown_head_share",
    "share",
    "Fraction of a shortened text to take from its beginning. The rest comes from its end.",
)
ABOUT_CHARACTERS = declare_threshold(
    200, "transcript.about_characters", "characters", "Maximum length of a tool's input in a turn."
)
MARGIN_CHARACTERS = declare_threshold(
    1_000,
    "transcript.margin_characters",
    "characters",
    "Number of characters to keep beyond a cut until secrets are redacted, because a partial "
    "secret would not be recognized.",
)
CALLS_KEPT = declare_threshold(
    500, "transcript.calls_kept", "count", "Maximum number of tool calls in a turn."
)
OPEN_KEPT = declare_threshold(
    1_000,
    "transcript.open_kept",
    "count",
    "Maximum number of unfinished turns to keep in memory, including turns that are waiting for "
    "an earlier one.",
)
OPEN_CHARACTERS = declare_threshold(
    4_000_000,
    "transcript.open_characters",
    "characters",
    "Maximum total length of all unfinished turns in memory.",
)
CODEX_CALL_WORDS = declare_threshold(
    100,
    "transcript.codex_call_words",
    "words",
    "Maximum number of arguments to show for a Codex command in a turn.",
)
TRANSCRIBED_TURN_CHARACTERS = declare_threshold(
    4_000,
    "transcript.transcribed_turn_characters",
    "characters",
    "Output length after which the transcript of a program without hooks starts a new turn.",
)
COMMAND_LINE_CHARACTERS = declare_threshold(
    2_000,
    "command.line_characters",
    "characters",
    "Maximum length of an output line to keep from a program that has no harness of its own.",
)
COMMAND_LAST_LINES = declare_threshold(
    8,
    "command.last_lines",
    "lines",
    "Number of lines to keep from the end of the output to explain an exit, for programs that "
    "have no harness of their own.",
)
COMMAND_HINT_CHARACTERS = declare_threshold(
    600,
    "command.hint_characters",
    "characters",
    "Maximum length of a usage-limit message from a program that has no harness of its own.",
)
RULES_CHARACTERS = declare_threshold(
    4_000,
    "primer.rules_characters",
    "characters",
    "Maximum length of the rules in a shortened primer.",
)
REQUEST_CHARACTERS = declare_threshold(
    3_000,
    "primer.request_characters",
    "characters",
    "Maximum length of the user's request in a hook's primer.",
)
RELAY_HEADING_TOKENS = declare_threshold(
    10,
    "relay.heading_tokens",
    "tokens",
    "Number of tokens reserved for the directive's heading in a trimmed relay.",
)
HEADLINE_CHARACTERS = declare_threshold(
    200,
    "status.headline_characters",
    "characters",
    "Maximum directive length in `status` output.",
)
DID_CHARACTERS = declare_threshold(
    300,
    "loop.did_characters",
    "characters",
    "Maximum length of a cycle's directive or work description in the log.",
)
SUMMARY_SECONDS = declare_threshold(
    300.0, "summary.seconds", "seconds", "Timeout for the summarizer's answer."
)
SUMMARY_OUTPUT_BYTES = declare_threshold(
    16 * 1024 * 1024,
    "summary.output_bytes",
    "bytes",
    "Maximum size of a summarizer's output. Larger output is discarded.",
)
SUMMARY_SHOWN_CHARACTERS = declare_threshold(
    (2_000, 500, 120, 0),
    "summary.shown_characters",
    "characters",
    "Maximum lengths of a tool's output in a summarizer's input, in the order in which Rekindle "
    "tries them until the input fits.",
)
SUMMARY_ITEMS = declare_threshold(
    40, "summary.items", "count", "Maximum number of items per section in a summary."
)
ITEM_CHARACTERS = declare_threshold(
    600,
    "summary.item_characters",
    "characters",
    "Maximum length of an item in a summary. A longer item is cut.",
)
WHOLE_CHARACTERS = declare_threshold(
    100_000,
    "summary.whole_characters",
    "characters",
    "Maximum length of an item in a summarizer's answer. A longer item is ignored.",
)
QUOTED_WORDS = declare_threshold(
    5,
    "summary.quoted_words",
    "words",
    "Minimum number of consecutive words shared with the transcript for a text to count as a "
    "quotation.",
)
QUOTED_REQUEST_CHARACTERS = declare_threshold(
    300,
    "summary.quoted_request_characters",
    "characters",
    "Maximum length of the user's last request in a summary.",
)
TRACE_STEMS = declare_threshold(
    3,
    "summary.trace_stems",
    "words",
    "Number of word stems that a line must share with a tool's text, but not with the user or the "
    "agent, to count as coming from the tool.",
)
TRACE_SUPPORT = declare_threshold(
    0.33,
    "summary.trace_support",
    "share",
    "Minimum share of an instruction's word stems that the user or the agent must have used.",
)
TRACE_GAP = declare_threshold(
    3,
    "summary.trace_gap",
    "words",
    "Number of consecutive words, not used by the user or the agent, that make an instruction "
    "count as a quotation. Common words do not count.",
)
TRACE_HEARSAY = declare_threshold(
    0.5,
    "summary.trace_hearsay",
    "share",
    "Minimum share of a sentence's word stems that a tool's text must contain for the sentence to "
    "count as repeating it.",
)
TRACE_WINDOW_WORDS = declare_threshold(
    40,
    "summary.trace_window_words",
    "words",
    "Number of words from a tool's text to compare with a line at a time.",
)
MECHANICAL_QUOTED_CHARACTERS = declare_threshold(
    300,
    "summary.mechanical_quoted_characters",
    "characters",
    "Maximum length of a message that a mechanical summary quotes.",
)
MECHANICAL_FEW = declare_threshold(
    5,
    "summary.mechanical_few",
    "count",
    "Maximum number of failed calls and of changed files in a mechanical summary.",
)
MECHANICAL_ITEMS = declare_threshold(
    20,
    "summary.mechanical_items",
    "count",
    "Maximum number of commits, loops and unfinished calls that a mechanical summary names.",
)
BRIEF_PIECES = declare_threshold(
    8,
    "brief.pieces",
    "count",
    "Maximum number of model requests for one day's turns. The oldest turns that do not fit are "
    "left out.",
)
BRIEF_RECORDS_SHARE = declare_threshold(
    0.4,
    "brief.records_share",
    "share",
    "Maximum share of a request that earlier records may fill. The rest is for the day's turns.",
)
BRIEF_TURN_TOKENS = declare_threshold(
    100,
    "brief.turn_tokens",
    "tokens",
    "Minimum space for turns in a request. With less space, Rekindle does not send the request.",
)
BRIEF_RETRY_SECONDS = declare_threshold(
    900.0, "brief.retry_seconds", "seconds", "Wait before the first retry of a failed brief."
)
BRIEF_RETRY_MOST_SECONDS = declare_threshold(
    86_400.0,
    "brief.retry_most_seconds",
    "seconds",
    "Maximum wait before retrying a failed brief. Each wait is twice as long as the previous one.",
)
BRIEF_FIRST_DAYS = declare_threshold(
    7, "brief.first_days", "days", "Number of days that an agent's first brief covers."
)
BRIEF_OVERLAP_DAYS = declare_threshold(
    1,
    "brief.overlap_days",
    "days",
    "Overlap between consecutive briefs, to allow for clock differences.",
)
BRIEF_UNUSABLE = declare_threshold(
    3,
    "brief.unusable",
    "count",
    "Number of consecutive briefs with unusable answers after which Rekindle skips their turns.",
)
BRIEF_TURN_CHARACTERS = declare_threshold(
    8,
    "brief.turn_characters",
    "characters",
    "Number of characters to read for each token in the day's limit. Older turns are not read.",
)
BRIEF_TOLD_KEPT = declare_threshold(
    1_000,
    "brief.told_kept",
    "count",
    "Maximum number of transcripts whose positions are remembered between briefs.",
)
BRIEF_TOLD_DAYS = declare_threshold(
    14,
    "brief.told_days",
    "days",
    "Number of days to remember a transcript's position. After that, the transcript is read from "
    "its start.",
)
BRIEF_NUMBERS = declare_threshold(
    100,
    "brief.numbers",
    "count",
    "Maximum number of figures that briefs may add to the state. Figures that you add do not "
    "count.",
)
BRIEF_NUMBER_CHARACTERS = declare_threshold(
    40,
    "brief.number_characters",
    "characters",
    "Maximum length of a figure's name or value in a brief.",
)
DAY_NUMBER_CHARACTERS = declare_threshold(
    200,
    "brief.day_number_characters",
    "characters",
    "Maximum length of a figure's value in a summarizer's answer.",
)
BRIEF_FEW_LINES = declare_threshold(
    3,
    "brief.few_lines",
    "lines",
    "Number of changes and open loops that remain in the shortest possible brief.",
)
BRIEF_NEXT_CHARACTERS = declare_threshold(
    100,
    "brief.next_characters",
    "characters",
    "Length up to which a next action is never shortened in a brief.",
)
BRIEF_NEXT_SHARE = declare_threshold(
    0.75,
    "brief.next_share",
    "share",
    "Fraction of the next action to keep in each shortening step.",
)
QUOTED_CHARACTERS = declare_threshold(
    80, "texts.quoted_characters", "characters", "Maximum length of a value that a message quotes."
)
REASON_CHARACTERS = declare_threshold(
    300,
    "texts.reason_characters",
    "characters",
    "Maximum length of an error message that is recorded as a reason.",
)
EXIT_CHARACTERS = declare_threshold(
    240, "exits.characters", "characters", "Maximum length of a CLI's exit message to keep."
)
LIMIT_CHARACTERS = declare_threshold(
    600,
    "exits.limit_characters",
    "characters",
    "Maximum length of a CLI's message to search for the reset time of a usage limit.",
)
WORD_CHARACTERS = declare_threshold(
    200,
    "texts.word_characters",
    "characters",
    "Maximum length of a name to accept from a CLI's output.",
)
PHASE_CHARACTERS = declare_threshold(
    300, "relay.phase_characters", "characters", "Maximum length of the phase in a shortened relay."
)
PATH_CHARACTERS = declare_threshold(
    300, "work.path_characters", "characters", "Maximum length of a changed file's path."
)
SUBJECT_CHARACTERS = declare_threshold(
    200, "work.subject_characters", "characters", "Maximum length of a commit's subject."
)
CALL_PATHS = declare_threshold(
    20, "calls.paths", "count", "Maximum number of files to show for a tool call."
)
CHANGES_SHOWN = declare_threshold(
    3, "consent.changes_shown", "count", "Maximum number of changed settings to show."
)
