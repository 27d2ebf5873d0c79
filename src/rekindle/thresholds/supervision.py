"""Thresholds for running agents: processes, restarts, limits, progress and handoffs."""

from rekindle.thresholds import declare_threshold

POLL_SECONDS = declare_threshold(
    1.0,
    "run.poll_seconds",
    "seconds",
    "Interval at which a waiting supervisor looks for the operator's commands.",
)
TICK_SECONDS = declare_threshold(
    0.25, "run.tick_seconds", "seconds", "Interval at which a running process is checked."
)
HELD_TICK_SECONDS = declare_threshold(
    0.05,
    "run.held_tick_seconds",
    "seconds",
    "Interval at which a running process is checked while a tool call may be waiting for the"
    " supervisor.",
)
STOP_SECONDS = declare_threshold(
    10.0,
    "run.stop_seconds",
    "seconds",
    "Timeout for an agent to exit after SIGTERM; after it, SIGKILL is sent.",
)
LEAVING_SECONDS = declare_threshold(
    0.5,
    "run.leaving_seconds",
    "seconds",
    "Timeout for a stopped program to exit after its last report.",
)
FINISHED_SECONDS = declare_threshold(
    60.0,
    "run.finished_seconds",
    "seconds",
    "Timeout for a program that has finished its work to exit; after it, the program is stopped.",
)
KILLED_SECONDS = declare_threshold(
    10.0,
    "run.killed_seconds",
    "seconds",
    "Maximum time that the supervisor waits for the kernel to end a killed process.",
)
ORPHAN_SECONDS = declare_threshold(
    0.1,
    "run.orphan_seconds",
    "seconds",
    "Timeout for a process that a launch left behind to exit; after it, SIGKILL is sent.",
)
ORPHAN_ROUNDS = declare_threshold(
    100,
    "run.orphan_rounds",
    "count",
    "Maximum number of searches for new processes while others are being killed.",
)
RECORD_SECONDS = declare_threshold(
    2.0,
    "run.record_seconds",
    "seconds",
    "Interval at which a supervisor records processes that cannot be found again by their mark.",
)
STREAM_LAG_SECONDS = declare_threshold(
    2.0,
    "run.stream_lag_seconds",
    "seconds",
    "Maximum time by which a program's output may lag behind its hooks.",
)
RESUME_TRIES = declare_threshold(
    2,
    "run.resume_tries",
    "count",
    "Number of failed attempts to resume a session after which a fresh one starts.",
)
FOLD_EVERY_SECONDS = declare_threshold(
    2.0,
    "run.fold_every_seconds",
    "seconds",
    "Minimum interval at which a supervisor folds hook reports.",
)
SESSIONS_KEPT = declare_threshold(
    50, "run.sessions_kept", "count", "Number of sessions, and of launches, that a snapshot keeps."
)
TELLING_KEPT = declare_threshold(
    20,
    "run.telling_kept",
    "count",
    "Number of a program's last texts, tool calls and warnings to keep, because they can explain "
    "its exit.",
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
    "Maximum size of an output line to read from an agent.",
)
OUTPUT_BYTES = declare_threshold(
    1024 * 1024,
    "run.output_bytes",
    "bytes",
    "Maximum size of a detached supervisor's output file; a larger file is truncated.",
)
OUTPUT_KEPT_BYTES = declare_threshold(
    256 * 1024,
    "run.output_kept_bytes",
    "bytes",
    "Number of bytes to keep at the end of a detached supervisor's output file when it is "
    "truncated.",
)
ARGUMENT_BYTES = declare_threshold(
    120_000,
    "run.argument_bytes",
    "bytes",
    "Maximum size of a program's argument; Linux accepts 128 KiB.",
)
DETACHED_START_SECONDS = declare_threshold(
    60.0, "run.detached_start_seconds", "seconds", "Timeout for a detached supervisor to start."
)
TERMINAL_DRAIN_SECONDS = declare_threshold(
    1.0,
    "run.terminal_drain_seconds",
    "seconds",
    "Timeout for the terminal to show the last output of a program.",
)
TMUX_SECONDS = declare_threshold(10.0, "run.tmux_seconds", "seconds", "Timeout of a tmux call.")
CRONTAB_SECONDS = declare_threshold(
    10.0, "run.crontab_seconds", "seconds", "Timeout of a crontab call."
)
PROCESS_POLL_SECONDS = declare_threshold(
    0.005,
    "run.process_poll_seconds",
    "seconds",
    "Interval at which an exiting process is checked on systems other than Linux.",
)
PROCESS_LIST_SECONDS = declare_threshold(
    5.0,
    "run.process_list_seconds",
    "seconds",
    "Timeout for the operating system to describe a process, on systems other than Linux.",
)
BACKGROUND_COMMAND_CHARACTERS = declare_threshold(
    200,
    "run.background_command_characters",
    "characters",
    "Maximum length of the recorded command line of a background process.",
)
BACKGROUND_COMMANDS = declare_threshold(
    8,
    "run.background_commands",
    "count",
    "Maximum number of stopped background processes to list for the next session.",
)
BUSY_SHARE = declare_threshold(
    0.05,
    "run.busy_share",
    "share",
    "CPU use, as a share of one processor, above which a silent process counts as working.",
)
BUSY_BYTES = declare_threshold(
    16_384,
    "watch.busy_bytes",
    "bytes",
    "I/O per second above which a silent process counts as working; `sleep 1` in a loop causes"
    " half as much.",
)
NOTIFY_SECONDS = declare_threshold(
    10.0,
    "notify.seconds",
    "seconds",
    "Maximum time that a supervisor waits for all of its notifications to be delivered.",
)
NOTIFY_KILLED_SECONDS = declare_threshold(
    1.0, "notify.killed_seconds", "seconds", "Timeout for a killed notification process to end."
)
LIMIT_PROBE_SECONDS = declare_threshold(
    900.0,
    "limits.probe_seconds",
    "seconds",
    "First wait after a usage limit with an unknown end; each further wait is twice as long.",
)
MAX_LIMIT_PROBE_SECONDS = declare_threshold(
    3600.0,
    "limits.max_probe_seconds",
    "seconds",
    "Maximum wait after a usage limit with an unknown end.",
)
RESET_MINUTE_MARGIN_SECONDS = declare_threshold(
    60.0,
    "limits.minute_margin_seconds",
    "seconds",
    "Time added to a reset time with minute precision: 5pm may mean 17:00:59.",
)
RESET_SECOND_MARGIN_SECONDS = declare_threshold(
    1.0,
    "limits.second_margin_seconds",
    "seconds",
    "Time added to a wait in whole seconds, which the CLI may have rounded down.",
)
RESET_SHORT_SECONDS = declare_threshold(
    3600.0,
    "limits.short_seconds",
    "seconds",
    "Minimum plausible wait for a limit of a day or more; a shorter one is ignored.",
)
PROBED_CRASHES = declare_threshold(
    5,
    "restart.probed_crashes",
    "count",
    "Number of consecutive launches that fail at once before further launches count as probes.",
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
    "Duration of failures without progress after which the operator is notified.",
)
PROGRESS_SAME = declare_threshold(
    3,
    "progress.same",
    "count",
    "Number of consecutive launches, or cycles, that may change the same file before these "
    "changes no longer count as progress.",
)
PROGRESS_NUMBERED = declare_threshold(
    40,
    "progress.numbered",
    "count",
    "Number of consecutive launches, or cycles, that may change numbered files, such as "
    "`out-17.txt` after `out-16.txt`, before these changes no longer count as progress.",
)
PROGRESS_NAMES = declare_threshold(
    10,
    "progress.names",
    "count",
    "Maximum number of changed files that the log names for a launch or a cycle.",
)
GUESSED_USD_READ = declare_threshold(
    3.0,
    "budget.guessed_usd_read",
    "dollars",
    "Assumed price of a million input tokens, for a launch that was killed before it reported its "
    "cost.",
)
GUESSED_USD_WRITTEN = declare_threshold(
    15.0,
    "budget.guessed_usd_written",
    "dollars",
    "Assumed price of a million output tokens, for a launch that was killed before it reported "
    "its cost.",
)
SPENDING_SHARE = declare_threshold(
    0.01,
    "budget.spending_share",
    "share",
    "Minimum growth of a run's cost or tokens that is worth recording, as a share of the cap or, "
    "without a cap, of the total.",
)
UNTIL_SECONDS = declare_threshold(
    1800.0, "loop.until_seconds", "seconds", "Timeout for the `until:` command."
)
REVIEW_SECONDS = declare_threshold(
    3600.0, "loop.review_seconds", "seconds", "Timeout for a review."
)
SHORT_CYCLE_SECONDS = declare_threshold(
    60.0,
    "loop.short_cycle_seconds",
    "seconds",
    "Average cycle length below which handover costs more than the work.",
)
QUESTIONS_KEPT = declare_threshold(
    20,
    "questions.kept",
    "count",
    "Number of questions that a snapshot keeps; the log has all of them.",
)
QUESTIONS_A_LAUNCH = declare_threshold(
    5,
    "questions.a_launch",
    "count",
    "Maximum number of refused calls per launch that a person is asked about.",
)
REFUSED_KEPT = declare_threshold(
    50,
    "questions.refused_kept",
    "count",
    "Maximum number of calls, and of refused calls, to keep per launch.",
)
CALL_HELD_SECONDS = declare_threshold(
    2.0,
    "run.call_held_seconds",
    "seconds",
    "Time after which `run` prints a tool call that is still running; until then, the CLI may "
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
    "Number of ended cycles that a snapshot keeps; the log has all of them.",
)
MEASURE_SECONDS = declare_threshold(
    20.0,
    "handoff.measure_seconds",
    "seconds",
    "Timeout for a CLI to report the size of its window.",
)
MEASURE_TICK_SECONDS = declare_threshold(
    0.1,
    "handoff.measure_tick_seconds",
    "seconds",
    "Interval at which a CLI that is reporting the size of its window is checked.",
)
MEASURE_LINES = declare_threshold(
    1_000,
    "handoff.measure_lines",
    "lines",
    "Maximum number of output lines to read from a CLI that reports the size of its window.",
)
HANDOFF_VAIN_SHARE = declare_threshold(
    0.875,
    "handoff.vain_share",
    "share",
    "Window usage of a fresh session, as a share of the handoff threshold, above which hardly any "
    "room is left.",
)
HANDOFFS_VAIN = declare_threshold(
    2,
    "handoff.vain",
    "count",
    "Number of consecutive handoffs that free no room after which the agent stops.",
)
HANDOFFS_MANY = declare_threshold(
    3,
    "handoff.many",
    "count",
    "Number of handoffs in one cycle above which its work counts as too large.",
)
HANDOFFS_MOST = declare_threshold(
    20,
    "handoff.most",
    "count",
    "Maximum number of handoffs in one cycle, about a day's work; after them, a person is needed.",
)
WATCH_SILENCE_SHARE = declare_threshold(
    0.25,
    "watch.silence_share",
    "share",
    "Maximum interval between two checks of the watchdog, as a share of `watch.silence`.",
)
UNSEEN_END_SHARE = declare_threshold(
    0.1,
    "run.unseen_end_share",
    "share",
    "Check interval of a process whose exit the kernel cannot report, as a share of the normal "
    "interval.",
)
