"""Thresholds of commands: the size of their output, and how long they wait."""

from rekindle.thresholds import declare_threshold

EVENTS_POLL_SECONDS = declare_threshold(
    0.2,
    "events.poll_seconds",
    "seconds",
    "Interval at which `events --follow` looks for new events.",
)
EVENTS_HASH_CHARACTERS = declare_threshold(
    12, "events.hash_characters", "characters", "Part of a hash that `events` shows."
)
EVENTS_VALUE_CHARACTERS = declare_threshold(
    80, "events.value_characters", "characters", "Part of a field that `events` shows."
)
RELAY_ID_CHARACTERS = declare_threshold(
    10, "relay.id_characters", "characters", "Part of a commit's id that `relay log` shows."
)
RELAY_ID_SHORTEST = declare_threshold(
    4, "relay.id_shortest", "characters", "Shortest beginning of an id that finds a relay."
)
REPLAY_ABOUT_CHARACTERS = declare_threshold(
    94, "replay.about_characters", "characters", "Part of a stuck directive that `replay` shows."
)
REPORT_CHARACTERS = declare_threshold(
    96,
    "run.report_characters",
    "characters",
    "Part of a message, or a tool call, that `run` shows.",
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
    "Time a supervisor has to end before `stop` and `down` kill it.",
)
STOP_KILLED_SECONDS = declare_threshold(
    1.0,
    "stop.killed_seconds",
    "seconds",
    "Time a killed supervisor, and then the agent it leaves behind, has to end.",
)
STATUS_COLUMNS = declare_threshold(
    100, "status.columns", "characters", "Width of the table of `status` outside a terminal."
)
STATUS_POLL_SECONDS = declare_threshold(
    1.0, "status.poll_seconds", "seconds", "Interval at which `status --watch` refreshes."
)
TABLE_NAME_SHARE = declare_threshold(
    0.2, "status.name_share", "share", "Largest part of a line for the name or the state."
)
TABLE_TEXT_COLUMNS = declare_threshold(
    10, "status.text_columns", "characters", "Fewest columns for a reason or a next action."
)
MOMENT_CHARACTERS = declare_threshold(
    160, "morning.moment_characters", "characters", "Longest line of the timeline of a night."
)
MOMENT_EXAMPLES = declare_threshold(
    3, "morning.moment_examples", "count", "Refused calls that a line of the timeline names."
)
MORNING_MOMENTS = declare_threshold(
    16, "morning.moments", "count", "Most lines of the timeline of an agent's night."
)
MORNING_LOOPS = declare_threshold(
    10, "morning.loops", "count", "Most open loops of an agent that the morning page shows."
)
QUESTION_WIDTH = declare_threshold(
    100, "status.question_characters", "characters", "Part of a question that `status` shows."
)
QUESTIONS_NAMED = declare_threshold(
    20, "answer.questions_named", "count", "Open questions that `answer` names to choose from."
)
ANSWER_CHARACTERS = declare_threshold(
    8_000, "answer.characters", "characters", "Longest answer to an agent."
)
UP_SECONDS = declare_threshold(
    30.0,
    "up.seconds",
    "seconds",
    "Time a supervisor has to start before `up` reports that it did not.",
)
UP_ENDING_SECONDS = declare_threshold(
    25.0,
    "up.ending_seconds",
    "seconds",
    "Time `up` waits for a supervisor that is ending before it starts another.",
)
UP_SETTLE_SECONDS = declare_threshold(
    0.5,
    "up.settle_seconds",
    "seconds",
    "Time `up` watches a started supervisor for an early exit.",
)
UP_POLL_SECONDS = declare_threshold(
    0.05, "up.poll_seconds", "seconds", "Interval at which `up` checks a supervisor."
)
WATCH_LEAST_SECONDS = declare_threshold(
    1.0, "watch.least_seconds", "seconds", "Shortest interval between checks of a watchdog."
)
WATCH_MOST_SECONDS = declare_threshold(
    300.0, "watch.most_seconds", "seconds", "Longest interval between checks of a watchdog."
)
WATCH_LAST_LINES = declare_threshold(
    3,
    "watch.last_lines",
    "lines",
    "Last lines of a supervisor's output that explain why it did not start.",
)
WATCH_LAST_BYTES = declare_threshold(
    64 * 1024, "watch.last_bytes", "bytes", "Part at the end of that output that is read."
)
WITHHELD_NAMES = declare_threshold(
    8, "run.withheld_names", "count", "Most variables that `run` names as not passed on."
)
WITHHELD_FILES = declare_threshold(
    300,
    "run.withheld_files",
    "count",
    "Most files of the project that `run` searches for the names of variables.",
)
WITHHELD_FILE_BYTES = declare_threshold(
    128 * 1024,
    "run.withheld_file_bytes",
    "bytes",
    "Largest file that `run` searches for the names of variables.",
)
WITHHELD_DEPTH = declare_threshold(
    3, "run.withheld_depth", "count", "Levels below the agent's folder that `run` searches."
)
AGENTS_NAMED = declare_threshold(20, "agents.named", "count", "Agents that a message names.")
STOP_WAIT_SECONDS = declare_threshold(
    25.0,
    "stop.wait_seconds",
    "seconds",
    "Time `stop` and `down` wait for a supervisor, which gives its agent `run.stop_seconds` twice.",
)
SHOWN_LAST = declare_threshold(
    20, "lists.last", "count", "Entries that a command with `--last` shows by default."
)
LARGEST_LAST = declare_threshold(
    1_000_000_000, "lists.largest_last", "count", "Largest number for `--last`."
)
