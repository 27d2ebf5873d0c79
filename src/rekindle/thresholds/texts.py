"""Thresholds of texts: transcripts, summaries, briefs, primers and single lines."""

from rekindle.thresholds import declare_threshold

LINE_LIMIT = declare_threshold(
    2_000, "text.line_characters", "characters", "Longest text of a loop, and longest reason."
)
LOOP_ID_CHARACTERS = declare_threshold(
    200, "loops.id_characters", "characters", "Longest id of a loop."
)
AUTHOR_CHARACTERS = declare_threshold(
    40,
    "audit.author_characters",
    "characters",
    "Part of an author's name that a commit of the audit trail has.",
)
CONSENT_VALUE_CHARACTERS = declare_threshold(
    120,
    "trust.value_characters",
    "characters",
    "Longest changed setting that is shown whole; of longer ones, the part that differs.",
)
CONSENT_CONTEXT_CHARACTERS = declare_threshold(
    30, "trust.context_characters", "characters", "Text shown around the part that differs."
)
CONSENT_SHOWN_CHARACTERS = declare_threshold(
    4000,
    "trust.shown_characters",
    "characters",
    "Longest value that a question for trust shows; with a longer one it is not asked.",
)
UNTIL_LINES = declare_threshold(
    30, "loop.until_lines", "count", "Last lines of a failed `until:` that the next cycle is told."
)
UNTIL_CHARACTERS = declare_threshold(
    2_000,
    "loop.until_characters",
    "characters",
    "Part at the end of a failed `until:`'s output that the next cycle is told.",
)
TEXT_CHARACTERS = declare_threshold(
    8_000, "transcript.text_characters", "characters", "Part of a message that a turn keeps."
)
SHOWN_CHARACTERS = declare_threshold(
    2_000,
    "transcript.shown_characters",
    "characters",
    "Part of a tool's output that a turn keeps: its beginning and more of its end.",
)
SHOWN_HEAD_SHARE = declare_threshold(
    0.375,
    "transcript.shown_head_share",
    "share",
    "Share of a text with its middle cut out that is its beginning; the rest is its end.",
)
ABOUT_CHARACTERS = declare_threshold(
    200, "transcript.about_characters", "characters", "Part of a tool's input that a turn keeps."
)
MARGIN_CHARACTERS = declare_threshold(
    1_000,
    "transcript.margin_characters",
    "characters",
    "Text kept beyond a cut until secrets are redacted; half a secret is not recognized.",
)
CALLS_KEPT = declare_threshold(
    500, "transcript.calls_kept", "count", "Tool calls that a turn keeps."
)
OPEN_KEPT = declare_threshold(
    1_000,
    "transcript.open_kept",
    "count",
    "Unfinished turns in memory, including those that wait for an earlier one.",
)
OPEN_CHARACTERS = declare_threshold(
    4_000_000, "transcript.open_characters", "characters", "Text of all those turns."
)
CODEX_CALL_WORDS = declare_threshold(
    100, "transcript.codex_call_words", "words", "Arguments of a Codex command that a turn keeps."
)
TRANSCRIBED_TURN_CHARACTERS = declare_threshold(
    4_000,
    "transcript.transcribed_turn_characters",
    "characters",
    "Output of a program without hooks that is one turn of its transcript.",
)
COMMAND_LINE_CHARACTERS = declare_threshold(
    2_000,
    "command.line_characters",
    "characters",
    "Part of an output line that is kept from a program without a harness of its own.",
)
COMMAND_LAST_LINES = declare_threshold(
    8, "command.last_lines", "lines", "Last lines of such a program that can explain its exit."
)
COMMAND_HINT_CHARACTERS = declare_threshold(
    600,
    "command.hint_characters",
    "characters",
    "Part of its message about a usage limit that is kept.",
)
RULES_CHARACTERS = declare_threshold(
    4_000,
    "primer.rules_characters",
    "characters",
    "Part of the rules in a hook's primer that is too long.",
)
REQUEST_CHARACTERS = declare_threshold(
    3_000,
    "primer.request_characters",
    "characters",
    "Part of a longer request that a hook's primer repeats.",
)
RELAY_HEADING_TOKENS = declare_threshold(
    10, "relay.heading_tokens", "tokens", "Room for a directive's heading in a trimmed relay."
)
HEADLINE_CHARACTERS = declare_threshold(
    200, "status.headline_characters", "characters", "Part of a directive that `status` shows."
)
DID_CHARACTERS = declare_threshold(
    300,
    "loop.did_characters",
    "characters",
    "Part of a cycle's work, and of its directive, that the log has.",
)
SUMMARY_SECONDS = declare_threshold(
    300.0, "summary.seconds", "seconds", "Time a summarizer has to answer."
)
SUMMARY_OUTPUT_BYTES = declare_threshold(
    16 * 1024 * 1024,
    "summary.output_bytes",
    "bytes",
    "Largest output of a summarizer; a larger one is not used.",
)
SUMMARY_SHOWN_CHARACTERS = declare_threshold(
    (2_000, 500, 120, 0),
    "summary.shown_characters",
    "characters",
    "Part of each tool's output that a summarizer gets: the first of these that fits its cap.",
)
SUMMARY_ITEMS = declare_threshold(
    40, "summary.items", "count", "Items of one section of a summary."
)
ITEM_CHARACTERS = declare_threshold(
    600, "summary.item_characters", "characters", "Length to which an item of a summary is cut."
)
WHOLE_CHARACTERS = declare_threshold(
    100_000, "summary.whole_characters", "characters", "Part of an item that is read at all."
)
QUOTED_WORDS = declare_threshold(
    5,
    "summary.quoted_words",
    "words",
    "Consecutive words shared with the transcript that make a quotation.",
)
QUOTED_REQUEST_CHARACTERS = declare_threshold(
    300,
    "summary.quoted_request_characters",
    "characters",
    "Part of the person's last request that a summary quotes.",
)
TRACE_STEMS = declare_threshold(
    3,
    "summary.trace_stems",
    "words",
    "Stems of a line, used by neither person nor agent, that show that it comes from a tool.",
)
TRACE_SUPPORT = declare_threshold(
    0.33,
    "summary.trace_support",
    "share",
    "Share of an instruction's stems that the person or the agent must have used.",
)
TRACE_HEARSAY = declare_threshold(
    0.5,
    "summary.trace_hearsay",
    "share",
    "Share of a sentence's stems in a tool's text at which it repeats that text.",
)
TRACE_WINDOW_WORDS = declare_threshold(
    40,
    "summary.trace_window_words",
    "words",
    "Words of a tool's text that are compared with a line at a time.",
)
MECHANICAL_QUOTED_CHARACTERS = declare_threshold(
    300,
    "summary.mechanical_quoted_characters",
    "characters",
    "Part of a message that a mechanical summary quotes.",
)
MECHANICAL_FEW = declare_threshold(
    5,
    "summary.mechanical_few",
    "count",
    "Failed calls, and changed files, that a mechanical summary names.",
)
MECHANICAL_ITEMS = declare_threshold(
    20,
    "summary.mechanical_items",
    "count",
    "Commits, loops and unfinished calls that a mechanical summary names.",
)
BRIEF_PIECES = declare_threshold(
    8,
    "brief.pieces",
    "count",
    "Most requests for one day; the oldest part that does not fit them is left out.",
)
BRIEF_RECORDS_SHARE = declare_threshold(
    0.4,
    "brief.records_share",
    "share",
    "Share of a request for earlier records; the rest is for the day.",
)
BRIEF_TURN_TOKENS = declare_threshold(
    100, "brief.turn_tokens", "tokens", "Room for turns below which no request is made."
)
BRIEF_RETRY_SECONDS = declare_threshold(
    900.0, "brief.retry_seconds", "seconds", "First wait before a failed brief is tried again."
)
BRIEF_RETRY_MOST_SECONDS = declare_threshold(
    86_400.0,
    "brief.retry_most_seconds",
    "seconds",
    "Longest wait before it is tried again; each wait is twice the last.",
)
BRIEF_FIRST_DAYS = declare_threshold(
    7, "brief.first_days", "days", "Days that an agent's first brief covers."
)
BRIEF_OVERLAP_DAYS = declare_threshold(
    1, "brief.overlap_days", "days", "Time before the last brief that is read again: clocks differ."
)
BRIEF_UNUSABLE = declare_threshold(
    3,
    "brief.unusable",
    "count",
    "Consecutive briefs with an unusable answer after which their turns are skipped.",
)
BRIEF_TURN_CHARACTERS = declare_threshold(
    8,
    "brief.turn_characters",
    "characters",
    "Characters read per token of a day's cap; older turns are not read.",
)
BRIEF_TOLD_KEPT = declare_threshold(
    1_000,
    "brief.told_kept",
    "count",
    "Transcripts whose position in the last brief is remembered.",
)
BRIEF_TOLD_DAYS = declare_threshold(
    14,
    "brief.told_days",
    "days",
    "Days for which it is remembered; a transcript is then read from its start.",
)
BRIEF_NUMBERS = declare_threshold(
    100, "brief.numbers", "count", "Numbers that briefs add to the state; your own are not counted."
)
BRIEF_NUMBER_CHARACTERS = declare_threshold(
    40, "brief.number_characters", "characters", "Longest name, and value, of a number in a brief."
)
DAY_NUMBER_CHARACTERS = declare_threshold(
    200,
    "brief.day_number_characters",
    "characters",
    "Part of a number's value that is read from an answer.",
)
BRIEF_FEW_LINES = declare_threshold(
    3,
    "brief.few_lines",
    "lines",
    "Changes and open loops that stay longest in a brief that is too long.",
)
BRIEF_NEXT_CHARACTERS = declare_threshold(
    100, "brief.next_characters", "characters", "Part of the next action that stays in every brief."
)
BRIEF_NEXT_SHARE = declare_threshold(
    0.75,
    "brief.next_share",
    "share",
    "Share of the next action that stays each time it is shortened.",
)
QUOTED_CHARACTERS = declare_threshold(
    80, "texts.quoted_characters", "characters", "Part of a value that a message quotes."
)
REASON_CHARACTERS = declare_threshold(
    300, "texts.reason_characters", "characters", "Part of an error that is kept as a reason."
)
EXIT_CHARACTERS = declare_threshold(
    240, "exits.characters", "characters", "Part of a CLI's exit message that is kept."
)
LIMIT_CHARACTERS = declare_threshold(
    600,
    "exits.limit_characters",
    "characters",
    "Part of a CLI's message that is searched for the end of a usage limit.",
)
WORD_CHARACTERS = declare_threshold(
    200, "texts.word_characters", "characters", "Longest name that is accepted from a CLI's output."
)
PHASE_CHARACTERS = declare_threshold(
    300, "relay.phase_characters", "characters", "Part of the phase that a shortened relay keeps."
)
PATH_CHARACTERS = declare_threshold(
    300, "work.path_characters", "characters", "Part of a changed file's path that is kept."
)
SUBJECT_CHARACTERS = declare_threshold(
    200, "work.subject_characters", "characters", "Part of a commit's subject that is kept."
)
CALL_PATHS = declare_threshold(20, "calls.paths", "count", "Files of a tool call that are shown.")
CHANGES_SHOWN = declare_threshold(
    3, "consent.changes_shown", "count", "Changed settings that are shown."
)
