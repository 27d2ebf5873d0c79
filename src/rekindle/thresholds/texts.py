"""Thresholds for texts: transcripts, summaries, briefs, primers and single lines."""

from rekindle.thresholds import declare_threshold

LINE_LIMIT = declare_threshold(
    2_000, "text.line_characters", "characters", "Maximum length of a loop's text, and of a reason."
)
LOOP_ID_CHARACTERS = declare_threshold(
    200, "loops.id_characters", "characters", "Maximum length of a loop's id."
)
AUTHOR_CHARACTERS = declare_threshold(
    40,
    "audit.author_characters",
    "characters",
    "Maximum length of an author's name in a commit of the audit trail.",
)
CONSENT_VALUE_CHARACTERS = declare_threshold(
    120,
    "trust.value_characters",
    "characters",
    "Maximum length of a changed setting to show in full; for a longer one, only the difference "
    "is shown.",
)
CONSENT_CONTEXT_CHARACTERS = declare_threshold(
    30,
    "trust.context_characters",
    "characters",
    "Number of characters to show around the difference in a long setting.",
)
CONSENT_SHOWN_CHARACTERS = declare_threshold(
    4000,
    "trust.shown_characters",
    "characters",
    "Maximum length of a value in the trust prompt; with a longer value, Rekindle does not ask.",
)
UNTIL_LINES = declare_threshold(
    30,
    "loop.until_lines",
    "count",
    "Number of output lines, from the end, of a failed `until:` command that the next cycle "
    "receives.",
)
UNTIL_CHARACTERS = declare_threshold(
    2_000,
    "loop.until_characters",
    "characters",
    "Maximum number of characters, from the end, of a failed `until:` command's output that the "
    "next cycle receives.",
)
TEXT_CHARACTERS = declare_threshold(
    8_000, "transcript.text_characters", "characters", "Maximum length of a message in a turn."
)
SHOWN_CHARACTERS = declare_threshold(
    2_000,
    "transcript.shown_characters",
    "characters",
    "Maximum length of a tool's output in a turn; longer output loses its middle.",
)
SHOWN_HEAD_SHARE = declare_threshold(
    0.375,
    "transcript.shown_head_share",
    "share",
    "Share of a shortened text that comes from its beginning; the rest comes from its end.",
)
ABOUT_CHARACTERS = declare_threshold(
    200, "transcript.about_characters", "characters", "Maximum length of a tool's input in a turn."
)
MARGIN_CHARACTERS = declare_threshold(
    1_000,
    "transcript.margin_characters",
    "characters",
    "Number of characters to keep beyond a cut until secrets are redacted, because half a secret "
    "would not be recognized.",
)
CALLS_KEPT = declare_threshold(
    500, "transcript.calls_kept", "count", "Maximum number of tool calls in a turn."
)
OPEN_KEPT = declare_threshold(
    1_000,
    "transcript.open_kept",
    "count",
    "Maximum number of unfinished turns in memory, including those that wait for an earlier turn.",
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
    "Maximum number of arguments of a Codex command in a turn.",
)
TRANSCRIBED_TURN_CHARACTERS = declare_threshold(
    4_000,
    "transcript.transcribed_turn_characters",
    "characters",
    "Output length at which a program without hooks starts a new turn in its transcript.",
)
COMMAND_LINE_CHARACTERS = declare_threshold(
    2_000,
    "command.line_characters",
    "characters",
    "Maximum length of an output line to keep from a program without its own harness.",
)
COMMAND_LAST_LINES = declare_threshold(
    8,
    "command.last_lines",
    "lines",
    "Number of output lines, from the end, that can explain the exit of a program without its own "
    "harness.",
)
COMMAND_HINT_CHARACTERS = declare_threshold(
    600,
    "command.hint_characters",
    "characters",
    "Maximum length of a usage-limit message from a program without its own harness.",
)
RULES_CHARACTERS = declare_threshold(
    4_000,
    "primer.rules_characters",
    "characters",
    "Maximum length of the rules in a hook's primer that has to be shortened.",
)
REQUEST_CHARACTERS = declare_threshold(
    3_000,
    "primer.request_characters",
    "characters",
    "Maximum length of the request that a hook's primer repeats.",
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
    "Maximum length of a directive in the output of `status`.",
)
DID_CHARACTERS = declare_threshold(
    300,
    "loop.did_characters",
    "characters",
    "Maximum length of a cycle's work, and of its directive, in the log.",
)
SUMMARY_SECONDS = declare_threshold(
    300.0, "summary.seconds", "seconds", "Timeout for a summarizer to answer."
)
SUMMARY_OUTPUT_BYTES = declare_threshold(
    16 * 1024 * 1024,
    "summary.output_bytes",
    "bytes",
    "Maximum size of a summarizer's output; larger output is discarded.",
)
SUMMARY_SHOWN_CHARACTERS = declare_threshold(
    (2_000, 500, 120, 0),
    "summary.shown_characters",
    "characters",
    "Maximum lengths of a tool's output in a summarizer's input, in the order of trial: the first "
    "one with which the input fits is used.",
)
SUMMARY_ITEMS = declare_threshold(
    40, "summary.items", "count", "Maximum number of items per section of a summary."
)
ITEM_CHARACTERS = declare_threshold(
    600,
    "summary.item_characters",
    "characters",
    "Maximum length of an item in a summary; a longer item is cut.",
)
WHOLE_CHARACTERS = declare_threshold(
    100_000,
    "summary.whole_characters",
    "characters",
    "Maximum length of an item in a summarizer's answer; a longer item is ignored.",
)
QUOTED_WORDS = declare_threshold(
    5,
    "summary.quoted_words",
    "words",
    "Minimum number of consecutive words shared with the transcript at which a text counts as a "
    "quotation.",
)
QUOTED_REQUEST_CHARACTERS = declare_threshold(
    300,
    "summary.quoted_request_characters",
    "characters",
    "Maximum length of the person's last request in a summary.",
)
TRACE_STEMS = declare_threshold(
    3,
    "summary.trace_stems",
    "words",
    "Number of word stems that a line must share only with a tool's text, not with the person or "
    "the agent, to count as coming from the tool.",
)
TRACE_SUPPORT = declare_threshold(
    0.33,
    "summary.trace_support",
    "share",
    "Minimum share of an instruction's word stems that the person or the agent must have used.",
)
TRACE_GAP = declare_threshold(
    3,
    "summary.trace_gap",
    "words",
    "Number of successive words in an instruction, none of them used by the person or the agent, at"
    " which it counts as a quotation; common words do not count.",
)
TRACE_HEARSAY = declare_threshold(
    0.5,
    "summary.trace_hearsay",
    "share",
    "Minimum share of a sentence's word stems in a tool's text at which the sentence counts as a "
    "repetition of it.",
)
TRACE_WINDOW_WORDS = declare_threshold(
    40,
    "summary.trace_window_words",
    "words",
    "Number of words of a tool's text to compare with a line at a time.",
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
    "Maximum number of failed calls, and of changed files, that a mechanical summary names.",
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
    "Maximum number of requests to a model for one day; the oldest turns that do not fit are left "
    "out.",
)
BRIEF_RECORDS_SHARE = declare_threshold(
    0.4,
    "brief.records_share",
    "share",
    "Maximum share of a request that earlier records may fill; the rest is for the day's turns.",
)
BRIEF_TURN_TOKENS = declare_threshold(
    100,
    "brief.turn_tokens",
    "tokens",
    "Minimum room for turns in a request; with less room, no request is made.",
)
BRIEF_RETRY_SECONDS = declare_threshold(
    900.0, "brief.retry_seconds", "seconds", "First wait before a failed brief is retried."
)
BRIEF_RETRY_MOST_SECONDS = declare_threshold(
    86_400.0,
    "brief.retry_most_seconds",
    "seconds",
    "Maximum wait before a failed brief is retried; each wait is twice as long as the previous"
    " one.",
)
BRIEF_FIRST_DAYS = declare_threshold(
    7, "brief.first_days", "days", "Number of days that an agent's first brief covers."
)
BRIEF_OVERLAP_DAYS = declare_threshold(
    1,
    "brief.overlap_days",
    "days",
    "Time before the last brief that the next brief reads again, because clocks differ.",
)
BRIEF_UNUSABLE = declare_threshold(
    3,
    "brief.unusable",
    "count",
    "Number of consecutive briefs with unusable answers after which their turns are skipped.",
)
BRIEF_TURN_CHARACTERS = declare_threshold(
    8,
    "brief.turn_characters",
    "characters",
    "Number of characters to read per token of a day's cap; older turns are not read.",
)
BRIEF_TOLD_KEPT = declare_threshold(
    1_000,
    "brief.told_kept",
    "count",
    "Maximum number of transcripts whose reported position is remembered.",
)
BRIEF_TOLD_DAYS = declare_threshold(
    14,
    "brief.told_days",
    "days",
    "Number of days to remember a transcript's position; later, the transcript is read from its "
    "start.",
)
BRIEF_NUMBERS = declare_threshold(
    100,
    "brief.numbers",
    "count",
    "Maximum number of figures that briefs may add to the state; figures that you add do not "
    "count.",
)
BRIEF_NUMBER_CHARACTERS = declare_threshold(
    40,
    "brief.number_characters",
    "characters",
    "Maximum length of the name, and of the value, of a figure in a brief.",
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
    "Number of changes, and of open loops, that a shortened brief keeps to the last.",
)
BRIEF_NEXT_CHARACTERS = declare_threshold(
    100,
    "brief.next_characters",
    "characters",
    "Maximum length of a next action that a brief never shortens.",
)
BRIEF_NEXT_SHARE = declare_threshold(
    0.75,
    "brief.next_share",
    "share",
    "Share of the next action that remains each time it is shortened.",
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
    "Maximum length of a CLI's message to search for the end of a usage limit.",
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
