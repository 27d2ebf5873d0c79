"""Thresholds for commands: the size of their output, and how long they wait."""

from rekindle.thresholds import declare_threshold

EVENTS_POLL_SECONDS = declare_threshold(
    0.2,
    "events.poll_seconds",
    "seconds",
    "Interval at which `events --follow` looks for new events.",
)
EVENTS_HASH_CHARACTERS = declare_threshold(
    12,
    "events.hash_characters",
    "characters",
    "Number of characters of a hash that `events` shows.",
)
EVENTS_VALUE_CHARACTERS = declare_threshold(
    80,
    "events.value_characters",
    "characters",
    "Maximum length of a field in the output of `events`.",
)
RELAY_ID_CHARACTERS = declare_threshold(
    10,
    "relay.id_characters",
    "characters",
    "Number of characters of a commit id that `relay log` shows.",
)
RELAY_ID_SHORTEST = declare_threshold(
    4,
    "relay.id_shortest",
    "characters",
    "Minimum length of an abbreviated id that selects a relay.",
)
REPLAY_ABOUT_CHARACTERS = declare_threshold(
    94,
    "replay.about_characters",
    "characters",
    "Maximum length of a stuck directive in the output of `replay`.",
)
REPORT_CHARACTERS = declare_threshold(
    96,
    "run.report_characters",
    "characters",
    "Maximum length of a message, or a tool call, in the output of `run`.",
)
STOP_POLL_SECONDS = declare_threshold(
    0.2,
    "stop.poll_seconds",
    "seconds",
    "Interval at which `stop` checks whether the agent has ended.",
)
STOP_SUPERVISOR_SECONDS = declare_threshold(
    13.0,
    "stop.supervisor_seconds",
    "seconds",
    "Timeout for a supervisor to exit before `stop` and `down` kill it.",
)
STOP_KILLED_SECONDS = declare_threshold(
    1.0,
    "stop.killed_seconds",
    "seconds",
    "Timeout for a killed supervisor to end, and then for the agent that it leaves behind.",
)
STATUS_COLUMNS = declare_threshold(
    100, "status.columns", "characters", "Width of the `status` table outside a terminal."
)
STATUS_POLL_SECONDS = declare_threshold(
    1.0, "status.poll_seconds", "seconds", "Interval at which `status --watch` refreshes."
)
TABLE_NAME_SHARE = declare_threshold(
    0.2, "status.name_share", "share", "Maximum share of a line for an agent's name or state."
)
TABLE_TEXT_COLUMNS = declare_threshold(
    10,
    "status.text_columns",
    "characters",
    "Minimum width of a reason or a next action in a table.",
)
MOMENT_CHARACTERS = declare_threshold(
    160,
    "morning.moment_characters",
    "characters",
    "Maximum length of a line in the timeline of a night.",
)
MOMENT_EXAMPLES = declare_threshold(
    3,
    "morning.moment_examples",
    "count",
    "Maximum number of refused calls that a line of the timeline names.",
)
MORNING_MOMENTS = declare_threshold(
    16, "morning.moments", "count", "Maximum number of lines in the timeline of an agent's night."
)
MORNING_LOOPS = declare_threshold(
    10, "morning.loops", "count", "Maximum number of an agent's open loops on the morning page."
)
QUESTION_WIDTH = declare_threshold(
    100,
    "status.question_characters",
    "characters",
    "Maximum length of a question in the output of `status`.",
)
QUESTIONS_NAMED = declare_threshold(
    20,
    "answer.questions_named",
    "count",
    "Maximum number of open questions that `answer` lists to choose from.",
)
ANSWER_CHARACTERS = declare_threshold(
    8_000, "answer.characters", "characters", "Maximum length of an answer to an agent."
)
UP_SECONDS = declare_threshold(
    30.0,
    "up.seconds",
    "seconds",
    "Timeout for a supervisor to start; after it, `up` reports a failure.",
)
UP_ENDING_SECONDS = declare_threshold(
    25.0,
    "up.ending_seconds",
    "seconds",
    "Maximum time that `up` waits for a supervisor that is ending before it starts another.",
)
UP_SETTLE_SECONDS = declare_threshold(
    0.5,
    "up.settle_seconds",
    "seconds",
    "Time for which `up` watches a new supervisor for an early exit.",
)
UP_POLL_SECONDS = declare_threshold(
    0.05, "up.poll_seconds", "seconds", "Interval at which `up` checks a supervisor."
)
WATCH_LEAST_SECONDS = declare_threshold(
    1.0, "watch.least_seconds", "seconds", "Minimum interval between two checks of the watchdog."
)
WATCH_MOST_SECONDS = declare_threshold(
    300.0, "watch.most_seconds", "seconds", "Maximum interval between two checks of the watchdog."
)
WATCH_LAST_LINES = declare_threshold(
    3,
    "watch.last_lines",
    "lines",
    "Number of output lines to show, from the end, if a supervisor did not start.",
)
WATCH_LAST_BYTES = declare_threshold(
    64 * 1024,
    "watch.last_bytes",
    "bytes",
    "Maximum number of output bytes to read, from the end, if a supervisor did not start.",
)
WITHHELD_NAMES = declare_threshold(
    8,
    "run.withheld_names",
    "count",
    "Maximum number of withheld variables that `run` names.",
)
WITHHELD_FILES = declare_threshold(
    300,
    "run.withheld_files",
    "count",
    "Maximum number of project files that `run` searches for variable names.",
)
WITHHELD_FILE_BYTES = declare_threshold(
    128 * 1024,
    "run.withheld_file_bytes",
    "bytes",
    "Maximum size of a file that `run` searches for variable names.",
)
WITHHELD_DEPTH = declare_threshold(
    3,
    "run.withheld_depth",
    "count",
    "Number of folder levels, below the agent's folder, that `run` searches for variable names.",
)
AGENTS_NAMED = declare_threshold(
    20, "agents.named", "count", "Maximum number of agents that a message names."
)
STOP_WAIT_SECONDS = declare_threshold(
    25.0,
    "stop.wait_seconds",
    "seconds",
    "Maximum time that `stop` and `down` wait for a supervisor, which gives its agent"
    " `run.stop_seconds` twice.",
)
SHOWN_LAST = declare_threshold(
    20, "lists.last", "count", "Number of entries that a command with `--last` shows by default."
)
LARGEST_LAST = declare_threshold(
    1_000_000_000, "lists.largest_last", "count", "Largest number that `--last` accepts."
)
