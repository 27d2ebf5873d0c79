"""Thresholds for running agents: processes, restarts, limits, progress and handoffs."""

from rekindle.thresholds import declare_threshold

POLL_SECONDS = declare_threshold(
    1.0,
    "run.poll_seconds",
    "seconds",
    "Interval at which a waiting supervisor checks for commands from the operator.",
)
TICK_SECONDS = declare_threshold(
    0.25,
    "run.tick_seconds",
    "seconds",
    "Interval at which the supervisor checks a running process.",
)
HELD_TICK_SECONDS = declare_threshold(
    0.05,
    "run.held_tick_seconds",
    "seconds",
    "Interval at which the supervisor checks a running process while a tool call may be waiting "
    "for an answer.",
)
STOP_SECONDS = declare_threshold(
    10.0,
    "run.stop_seconds",
    "seconds",
    "How long an agent may take to exit after SIGTERM. After that, the supervisor sends SIGKILL.",
)
LEAVING_SECONDS = declare_threshold(
    0.5,
    "run.leaving_seconds",
    "seconds",
    "How long a stopped program may take to exit after its last report.",
)
FINISHED_SECONDS = declare_threshold(
    60.0,
    "run.finished_seconds",
    "seconds",
    "How long a program may take to exit after it has finished its work. After that, the "
    "supervisor stops it.",
)
KILLED_SECONDS = declare_threshold(
    10.0,
    "run.killed_seconds",
    "seconds",
    "Maximum time that the supervisor waits for the kernel to remove a killed process.",
)
ORPHAN_SECONDS = declare_threshold(
    0.1,
    "run.orphan_seconds",
    "seconds",
    "How long the processes that a launch left running may take to exit. After that, the "
    "supervisor sends SIGKILL.",
)
ORPHAN_ROUNDS = declare_threshold(
    100,
    "run.orphan_rounds",
    "count",
    "Maximum number of searches for new child processes while Rekindle is killing the others.",
)
RECORD_SECONDS = declare_threshold(
    2.0,
    "run.record_seconds",
    "seconds",
    "Interval at which a supervisor records the processes that a launch has started.",
)
STREAM_LAG_SECONDS = declare_threshold(
    2.0,
    "run.stream_lag_seconds",
    "seconds",
    "Maximum delay of a program's output relative to its hooks.",
)
RESUME_TRIES = declare_threshold(
    2,
    "run.resume_tries",
    "count",
    "Number of failed attempts to resume a session before a fresh session starts.",
)
FOLD_EVERY_SECONDS = declare_threshold(
    2.0,
    "run.fold_every_seconds",
    "seconds",
    "Minimum interval at which a supervisor folds hook reports.",
)
SESSIONS_KEPT = declare_threshold(
    50, "run.sessions_kept", "count", "Number of sessions and of launches to keep in a snapshot."
)
TELLING_KEPT = declare_threshold(
    20,
    "run.telling_kept",
    "count",
    "Number of messages, tool calls and warnings to keep from the end of a program's output, in "
    "case they explain its exit.",
)
STDERR_BYTES = declare_threshold(
    16 * 1024,
    "run.stderr_bytes",
    "bytes",
    "Maximum number of bytes to keep from the end of a program's error output.",
)
OUTPUT_LINE_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "run.output_line_bytes",
    "bytes",
    "Maximum length of an output line to read from an agent.",
)
OUTPUT_BYTES = declare_threshold(
    1024 * 1024,
    "run.output_bytes",
    "bytes",
    "Maximum size of a detached supervisor's output file. A larger file is truncated.",
)
OUTPUT_KEPT_BYTES = declare_threshold(
    256 * 1024,
    "run.output_kept_bytes",
    "bytes",
    "Number of bytes to keep from the end of a detached supervisor's output file when truncating "
    "it.",
)
ARGUMENT_BYTES = declare_threshold(
    120_000,
    "run.argument_bytes",
    "bytes",
    "Maximum size of a command-line argument. Linux accepts 128 KiB.",
)
DETACHED_START_SECONDS = declare_threshold(
    60.0,
    "run.detached_start_seconds",
    "seconds",
    "How long a detached supervisor may take to start.",
)
TERMINAL_DRAIN_SECONDS = declare_threshold(
    1.0,
    "run.terminal_drain_seconds",
    "seconds",
    "How long the terminal may take to show a program's last output.",
)
TMUX_SECONDS = declare_threshold(10.0, "run.tmux_seconds", "seconds", "Timeout for a tmux call.")
CRONTAB_SECONDS = declare_threshold(
    10.0, "run.crontab_seconds", "seconds", "Timeout for a crontab call."
)
PROCESS_POLL_SECONDS = declare_threshold(
    0.005,
    "run.process_poll_seconds",
    "seconds",
    "Interval at which Rekindle checks an exiting process on systems other than Linux.",
)
PROCESS_LIST_SECONDS = declare_threshold(
    5.0,
    "run.process_list_seconds",
    "seconds",
    "Timeout for reading process information from the operating system, on systems other than "
    "Linux.",
)
BACKGROUND_COMMAND_CHARACTERS = declare_threshold(
    200,
    "run.background_command_characters",
    "characters",
    "Maximum length of a background process's recorded command line.",
)
BACKGROUND_COMMANDS = declare_threshold(
    8,
    "run.background_commands",
    "count",
    "Maximum number of stopped background processes to list in the next session's prompt.",
)
BUSY_SHARE = declare_threshold(
    0.05,
    "run.busy_share",
    "share",
    "CPU usage above which a silent process is considered busy, as a share of one processor.",
)
BUSY_BYTES = declare_threshold(
    16_384,
    "watch.busy_bytes",
    "bytes",
    "I/O per second above which a silent process is considered busy. A `sleep 1` loop causes half "
    "as much.",
)
NOTIFY_SECONDS = declare_threshold(
    10.0,
    "notify.seconds",
    "seconds",
    "Maximum time that a supervisor waits for all of its notifications to be delivered.",
)
NOTIFY_KILLED_SECONDS = declare_threshold(
    1.0,
    "notify.killed_seconds",
    "seconds",
    "How long to wait for a killed notification process to exit.",
)
LIMIT_PROBE_SECONDS = declare_threshold(
    900.0,
    "limits.probe_seconds",
    "seconds",
    "First wait after a usage limit whose reset time is unknown. Each further wait is twice as "
    "long.",
)
MAX_LIMIT_PROBE_SECONDS = declare_threshold(
    3600.0,
    "limits.max_probe_seconds",
    "seconds",
    "Maximum wait after a usage limit whose reset time is unknown.",
)
RESET_MINUTE_MARGIN_SECONDS = declare_threshold(
    60.0,
    "limits.minute_margin_seconds",
    "seconds",
    "Time added to a reset time that is only given to the minute, because 5pm may mean 17:00:59.",
)
RESET_SECOND_MARGIN_SECONDS = declare_threshold(
    1.0,
    "limits.second_margin_seconds",
    "seconds",
    "Time added to a wait that is given in whole seconds, because the CLI may have rounded it "
    "down.",
)
RESET_SHORT_SECONDS = declare_threshold(
    3600.0,
    "limits.short_seconds",
    "seconds",
    "Minimum plausible wait for a limit of a day or more. A shorter wait is ignored.",
)
PROBED_CRASHES = declare_threshold(
    5,
    "restart.probed_crashes",
    "count",
    "Number of consecutive immediate failures after which further launches count as probes.",
)
INSTANT_SECONDS = declare_threshold(
    180.0,
    "restart.instant_seconds",
    "seconds",
    "Run time below which a crash counts as an immediate failure.",
)
RETRY_NOTICE_SECONDS = declare_threshold(
    2700.0,
    "restart.retry_notice_seconds",
    "seconds",
    "Duration of repeated failures without progress after which Rekindle notifies the operator.",
)
PROGRESS_SAME = declare_threshold(
    3,
    "progress.same",
    "count",
    "Number of consecutive launches or cycles that may change the same file. After that, such "
    "changes no longer count as progress.",
)
PROGRESS_NUMBERED = declare_threshold(
    40,
    "progress.numbered",
    "count",
    "Number of consecutive launches or cycles that may write only numbered files, such as "
    "`out-16.txt` and `out-17.txt`. After that, such files no longer count as progress.",
)
PROGRESS_NAMES = declare_threshold(
    10,
    "progress.names",
    "count",
    "Maximum number of changed files to name in the log for one launch or cycle.",
)
GUESSED_USD_READ = declare_threshold(
    3.0,
    "budget.guessed_usd_read",
    "dollars",
    "Assumed price per million input tokens, for launches that were killed before they reported "
    "their cost.",
)
GUESSED_USD_WRITTEN = declare_threshold(
    15.0,
    "budget.guessed_usd_written",
    "dollars",
    "Assumed price per million output tokens, for launches that were killed before they reported "
    "their cost.",
)
SPENDING_SHARE = declare_threshold(
    0.01,
    "budget.spending_share",
    "share",
    "Minimum increase in a run's cost or tokens that is recorded, as a share of the limit, or of "
    "the total if there is no limit.",
)
UNTIL_SECONDS = declare_threshold(
    1800.0, "loop.until_seconds", "seconds", "Timeout for the `until:` command."
)
PREPARE_SECONDS = declare_threshold(
    3600.0, "loop.prepare_seconds", "seconds", "Timeout for the `prepare:` command."
)
REVIEW_SECONDS = declare_threshold(
    3600.0, "loop.review_seconds", "seconds", "Timeout for a review."
)
SHORT_CYCLE_SECONDS = declare_threshold(
    60.0,
    "loop.short_cycle_seconds",
    "seconds",
    "Average cycle length below which handing over costs more than the work itself.",
)
QUESTIONS_KEPT = declare_threshold(
    20,
    "questions.kept",
    "count",
    "Number of questions to keep in a snapshot. The log has all of them.",
)
QUESTIONS_A_LAUNCH = declare_threshold(
    5,
    "questions.a_launch",
    "count",
    "Maximum number of refused calls per launch to ask the operator about.",
)
REFUSED_KEPT = declare_threshold(
    50,
    "questions.refused_kept",
    "count",
    "Maximum number of calls and of refused calls to keep for each launch.",
)
CALL_HELD_SECONDS = declare_threshold(
    2.0,
    "run.call_held_seconds",
    "seconds",
    "Time after which `run` prints a tool call that is still running. Before that, the CLI may "
    "still refuse it.",
)
QUESTION_CHARACTERS = declare_threshold(
    2_000,
    "questions.characters",
    "characters",
    "Maximum length of a refused call's arguments in a question.",
)
CYCLES_KEPT = declare_threshold(
    50,
    "loop.cycles_kept",
    "count",
    "Number of finished cycles to keep in a snapshot. The log has all of them.",
)
MEASURE_SECONDS = declare_threshold(
    20.0,
    "handoff.measure_seconds",
    "seconds",
    "Timeout for a CLI's report of its context-window size.",
)
MEASURE_TICK_SECONDS = declare_threshold(
    0.1,
    "handoff.measure_tick_seconds",
    "seconds",
    "Interval at which to check a CLI that is reporting its context-window size.",
)
MEASURE_LINES = declare_threshold(
    1_000,
    "handoff.measure_lines",
    "lines",
    "Maximum number of output lines to read while a CLI reports its context-window size.",
)
HANDOFF_VAIN_SHARE = declare_threshold(
    0.875,
    "handoff.vain_share",
    "share",
    "Context-window usage above which a fresh session has too little space left, as a share of "
    "the handoff threshold.",
)
HANDOFFS_VAIN = declare_threshold(
    2,
    "handoff.vain",
    "count",
    "Number of consecutive handoffs that free no space before the agent stops.",
)
HANDOFFS_MANY = declare_threshold(
    3,
    "handoff.many",
    "count",
    "Number of handoffs in one cycle above which the cycle's work is considered too large.",
)
HANDOFFS_MOST = declare_threshold(
    20,
    "handoff.most",
    "count",
    "Maximum number of handoffs in one cycle: about a day's work. After that, the operator must "
    "decide what to do.",
)
WATCH_SILENCE_SHARE = declare_threshold(
    0.25,
    "watch.silence_share",
    "share",
    "Maximum interval between the watchdog's checks, as a share of `watch.silence`.",
)
UNSEEN_END_SHARE = declare_threshold(
    0.1,
    "run.unseen_end_share",
    "share",
    "Polling interval for a process whose exit the kernel cannot report, as a fraction of the "
    "normal interval.",
)
