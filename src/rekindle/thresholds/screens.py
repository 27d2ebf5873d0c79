"""Thresholds for commands: the size of their output and their timeouts."""

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
    "Number of hash characters that `events` shows.",
)
EVENTS_VALUE_CHARACTERS = declare_threshold(
    80,
    "events.value_characters",
    "characters",
    "Maximum field length in `events` output.",
)
RELAY_ID_CHARACTERS = declare_threshold(
    10,
    "relay.id_characters",
    "characters",
    "Number of commit-id characters that `relay log` shows.",
)
RELAY_ID_SHORTEST = declare_threshold(
    4,
    "relay.id_shortest",
    "characters",
    "Minimum length of an abbreviated id that selects a relay.",
)
REPLAY_PLACES = declare_threshold(
    5,
    "replay.places",
    "count",
    "Maximum number of relays that `rekindle relay replay` names for each reaction.",
)
REPLAY_ABOUT_CHARACTERS = declare_threshold(
    94,
    "replay.about_characters",
    "characters",
    "Maximum length of a stuck directive in `replay` output.",
)
REPORT_CHARACTERS = declare_threshold(
    96,
    "run.report_characters",
    "characters",
    "Maximum length of a message or a tool call in `run` output.",
)
STOP_POLL_SECONDS = declare_threshold(
    0.2,
    "stop.poll_seconds",
    "seconds",
    "Interval at which `stop` checks whether the agent has exited.",
)
STOP_SUPERVISOR_SECONDS = declare_threshold(
    13.0,
    "stop.supervisor_seconds",
    "seconds",
    "How long a supervisor may take to exit before `stop` and `down` kill it.",
)
STOP_KILLED_SECONDS = declare_threshold(
    1.0,
    "stop.killed_seconds",
    "seconds",
    "How long to wait for a killed supervisor to exit, and then for the agent that it left "
    "running.",
)
STATUS_COLUMNS = declare_threshold(
    100,
    "status.columns",
    "characters",
    "Width of the `status` table if the output is not a terminal.",
)
STATUS_POLL_SECONDS = declare_threshold(
    1.0, "status.poll_seconds", "seconds", "Interval at which `status --watch` refreshes."
)
TABLE_NAME_SHARE = declare_threshold(
    0.2,
    "status.name_share",
    "share",
    "Maximum width of an agent's name or state, as a share of the line.",
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
    "Maximum length of a line in a night's timeline.",
)
MOMENT_EXAMPLES = declare_threshold(
    3,
    "morning.moment_examples",
    "count",
    "Maximum number of refused calls to name in one line of a timeline.",
)
MORNING_MOMENTS = declare_threshold(
    16, "morning.moments", "count", "Maximum number of lines in an agent's timeline for one night."
)
MORNING_LOOPS = declare_threshold(
    10, "morning.loops", "count", "Maximum number of open loops per agent on the morning page."
)
NIGHT_HOURS = declare_threshold(
    12.0, "night.hours", "hours", "Length of the night that a screen shows unless you choose one."
)
NIGHT_POINTS = declare_threshold(
    600, "night.points", "count", "Maximum number of points in a curve of an agent's night."
)
QUESTION_WIDTH = declare_threshold(
    100,
    "status.question_characters",
    "characters",
    "Maximum question length in `status` output.",
)
QUESTIONS_NAMED = declare_threshold(
    20,
    "answer.questions_named",
    "count",
    "Maximum number of open questions that `answer` lists for you to choose from.",
)
ANSWER_CHARACTERS = declare_threshold(
    8_000, "answer.characters", "characters", "Maximum length of an answer to an agent."
)
STATUSLINE_BYTES = declare_threshold(
    256 * 1024, "statusline.bytes", "bytes", "Maximum input of `rekindle statusline` from a CLI."
)
UP_SECONDS = declare_threshold(
    30.0,
    "up.seconds",
    "seconds",
    "How long a supervisor may take to start. After that, `up` reports a failure.",
)
UP_ENDING_SECONDS = declare_threshold(
    25.0,
    "up.ending_seconds",
    "seconds",
    "Maximum time that `up` waits for an exiting supervisor before it starts a new one.",
)
UP_SETTLE_SECONDS = declare_threshold(
    0.5,
    "up.settle_seconds",
    "seconds",
    "How long `up` watches a new supervisor to make sure that it does not exit early.",
)
UP_POLL_SECONDS = declare_threshold(
    0.05, "up.poll_seconds", "seconds", "Interval at which `up` checks a supervisor."
)
WATCH_LEAST_SECONDS = declare_threshold(
    1.0, "watch.least_seconds", "seconds", "Minimum interval between the watchdog's checks."
)
WATCH_MOST_SECONDS = declare_threshold(
    300.0, "watch.most_seconds", "seconds", "Maximum interval between the watchdog's checks."
)
WATCH_LAST_LINES = declare_threshold(
    3,
    "watch.last_lines",
    "lines",
    "Number of lines to show from the end of the output if a supervisor fails to start.",
)
WATCH_LAST_BYTES = declare_threshold(
    64 * 1024,
    "watch.last_bytes",
    "bytes",
    "Maximum number of bytes to read from the end of the output if a supervisor fails to start.",
)
WITHHELD_NAMES = declare_threshold(
    8,
    "run.withheld_names",
    "count",
    "Maximum number of withheld environment variables that `run` names.",
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
    "Number of folder levels below the agent's folder that `run` searches for variable names.",
)
AGENTS_NAMED = declare_threshold(
    20, "agents.named", "count", "Maximum number of agents to name in a message."
)
STOP_WAIT_SECONDS = declare_threshold(
    25.0,
    "stop.wait_seconds",
    "seconds",
    "Maximum time that `stop` and `down` wait for a supervisor. A supervisor may give its agent "
    "`run.stop_seconds` twice.",
)
SHOWN_LAST = declare_threshold(
    20, "lists.last", "count", "Default for `--last`, the number of entries to show."
)
LARGEST_LAST = declare_threshold(
    1_000_000_000, "lists.largest_last", "count", "Maximum value of `--last`."
)
SHORT_COMMIT_CHARACTERS = declare_threshold(
    10,
    "snapshots.commit_characters",
    "characters",
    "Number of commit-id characters that `snapshots` and `rewind` show.",
)
UNRESTORED_NAMED = declare_threshold(
    20,
    "snapshots.ignored_named",
    "count",
    "Maximum number of ignored files and folders that `rewind` names.",
)
PIPELINE_BAR_COLUMNS = declare_threshold(
    24,
    "pipeline.bar_columns",
    "characters",
    "Maximum width of the progress bar for matrix workers.",
)
PIPELINE_FAILURES = declare_threshold(
    8,
    "pipeline.failures_shown",
    "count",
    "Maximum number of failed workers to list for a run.",
)
PIPELINE_START_SECONDS = declare_threshold(
    5.0,
    "pipeline.start_seconds",
    "seconds",
    "How long a command waits for a run's coordinator before it starts another one.",
)
PIPELINE_REASON_LINES = declare_threshold(
    3,
    "pipeline.reason_lines",
    "lines",
    "Maximum number of lines with the reason why a worker failed.",
)
TOP_POLL_SECONDS = declare_threshold(
    1.0, "top.poll_seconds", "seconds", "Interval at which `top` reads the agents."
)
TOP_BAR_COLUMNS = declare_threshold(
    8, "top.bar_columns", "characters", "Width of the context-window bar in `top`."
)
TOP_TEXT_COLUMNS = declare_threshold(
    24,
    "top.text_columns",
    "characters",
    "Width of the reason in `top` below which other columns are dropped.",
)
TOP_NAME_SHARE = declare_threshold(
    0.2, "top.name_share", "share", "Maximum width of an agent's name in `top`."
)
TOP_WIDE_COLUMNS = declare_threshold(
    100,
    "top.wide_columns",
    "characters",
    "Width of a terminal in which `top` shows a relay beside its changes.",
)
TOP_STRIP_LINES = declare_threshold(
    5, "top.strip_lines", "lines", "Maximum number of agents above the table of `top`."
)
TOP_OUTPUT_LINES = declare_threshold(
    200, "top.output_lines", "lines", "Number of lines of an agent's output that `top` shows."
)
TOP_NOTICE_SECONDS = declare_threshold(
    12.0, "top.notice_seconds", "seconds", "How long `top` shows the result of an action."
)
