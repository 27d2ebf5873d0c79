"""Thresholds of running agents: processes, hooks, restarts, limits, progress and handoffs."""

from rekindle.thresholds import declare_threshold

POLL_SECONDS = declare_threshold(
    1.0,
    "run.poll_seconds",
    "seconds",
    "Interval at which a waiting supervisor looks for commands of the operator.",
)
TICK_SECONDS = declare_threshold(
    0.25, "run.tick_seconds", "seconds", "Interval at which a process that runs is checked."
)
HELD_TICK_SECONDS = declare_threshold(
    0.05,
    "run.held_tick_seconds",
    "seconds",
    "The same interval while a tool call may wait for the supervisor.",
)
STOP_SECONDS = declare_threshold(
    10.0, "run.stop_seconds", "seconds", "Time an agent has to exit after SIGTERM before SIGKILL."
)
LEAVING_SECONDS = declare_threshold(
    0.5,
    "run.leaving_seconds",
    "seconds",
    "Time a stopped program has to exit after its last report.",
)
FINISHED_SECONDS = declare_threshold(
    60.0,
    "run.finished_seconds",
    "seconds",
    "Time a program that has finished has to exit before it is stopped.",
)
KILLED_SECONDS = declare_threshold(
    10.0,
    "run.killed_seconds",
    "seconds",
    "Time the supervisor waits for the kernel to end a killed process.",
)
ORPHAN_SECONDS = declare_threshold(
    0.1,
    "run.orphan_seconds",
    "seconds",
    "Time a process that a launch left behind has to exit before SIGKILL.",
)
ORPHAN_ROUNDS = declare_threshold(
    100,
    "run.orphan_rounds",
    "count",
    "Searches for processes that are forked while others are killed.",
)
RECORD_SECONDS = declare_threshold(
    2.0,
    "run.record_seconds",
    "seconds",
    "Interval at which a supervisor records processes that it could not find again by their mark.",
)
STREAM_LAG_SECONDS = declare_threshold(
    2.0,
    "run.stream_lag_seconds",
    "seconds",
    "Time by which the output of a program may lag behind its hooks.",
)
RESUME_TRIES = declare_threshold(
    2, "run.resume_tries", "count", "Failed attempts to resume a session before a fresh one starts."
)
FOLD_EVERY_SECONDS = declare_threshold(
    2.0,
    "run.fold_every_seconds",
    "seconds",
    "Shortest interval at which a supervisor folds the reports of hooks.",
)
SESSIONS_KEPT = declare_threshold(
    50, "run.sessions_kept", "count", "Sessions, and launches, in a snapshot."
)
TELLING_KEPT = declare_threshold(
    20, "run.telling_kept", "count", "Last lines of a program that can explain its exit."
)
STDERR_BYTES = declare_threshold(
    16 * 1024, "run.stderr_bytes", "bytes", "End of a program's error output that is kept."
)
OUTPUT_LINE_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "run.output_line_bytes",
    "bytes",
    "Longest line of output that is read from an agent.",
)
OUTPUT_BYTES = declare_threshold(
    1024 * 1024,
    "run.output_bytes",
    "bytes",
    "Size at which the output file of a detached supervisor is cut.",
)
OUTPUT_KEPT_BYTES = declare_threshold(
    256 * 1024, "run.output_kept_bytes", "bytes", "End of that file that is kept."
)
ARGUMENT_BYTES = declare_threshold(
    120_000, "run.argument_bytes", "bytes", "Longest argument of a program; Linux accepts 128 KiB."
)
DETACHED_START_SECONDS = declare_threshold(
    60.0, "run.detached_start_seconds", "seconds", "Time a detached supervisor has to start."
)
TERMINAL_DRAIN_SECONDS = declare_threshold(
    1.0,
    "run.terminal_drain_seconds",
    "seconds",
    "Time the terminal has to show the last output of a program.",
)
TMUX_SECONDS = declare_threshold(10.0, "run.tmux_seconds", "seconds", "Timeout of a tmux call.")
CRONTAB_SECONDS = declare_threshold(
    10.0, "run.crontab_seconds", "seconds", "Timeout of a crontab call."
)
PROCESS_POLL_SECONDS = declare_threshold(
    0.005,
    "run.process_poll_seconds",
    "seconds",
    "Interval at which an exit is awaited on systems other than Linux.",
)
PROCESS_LIST_SECONDS = declare_threshold(
    5.0,
    "run.process_list_seconds",
    "seconds",
    "Time the system has to describe a process on systems other than Linux.",
)
BACKGROUND_COMMAND_CHARACTERS = declare_threshold(
    200,
    "run.background_command_characters",
    "characters",
    "Part of a background process's command line that is recorded.",
)
BACKGROUND_COMMANDS = declare_threshold(
    8,
    "run.background_commands",
    "count",
    "Stopped background processes that the next session is told about.",
)
BUSY_SHARE = declare_threshold(
    0.05,
    "run.busy_share",
    "share",
    "Share of a processor above which a silent process counts as working.",
)
BUSY_BYTES = declare_threshold(
    16_384,
    "watch.busy_bytes",
    "bytes",
    "I/O per second above which a silent process works; `sleep 1` in a loop has half of it.",
)
NOTIFY_SECONDS = declare_threshold(
    10.0,
    "notify.seconds",
    "seconds",
    "Time a supervisor waits until all of its notifications are delivered.",
)
NOTIFY_KILLED_SECONDS = declare_threshold(
    1.0, "notify.killed_seconds", "seconds", "Time the killed process of a notification has to end."
)
HOOK_SECONDS = declare_threshold(
    10,
    "hooks.seconds",
    "seconds",
    "Timeout of a hook that is written to a CLI's settings; the hook itself gives up earlier.",
)
HOOK_CHARACTERS = declare_threshold(
    10_000,
    "hooks.characters",
    "characters",
    "Text that a CLI accepts from a hook, in UTF-16 units; a longer primer is shortened.",
)
HOOK_CONTEXT_TOKENS = declare_threshold(
    10_000,
    "hooks.context_tokens",
    "tokens",
    "Text that Codex is asked to accept from a hook, at four bytes per token.",
)
HOOK_PROMPT_CHARACTERS = declare_threshold(
    8_000,
    "hooks.prompt_characters",
    "characters",
    "Part of a prompt that is recorded, to repeat it after a compaction.",
)
PRIME_LOCK_SECONDS = declare_threshold(
    3.0,
    "hooks.prime_lock_seconds",
    "seconds",
    "Time the primer of a session waits for the agent's lock.",
)
SAME_START_SECONDS = declare_threshold(
    5.0,
    "hooks.same_start_seconds",
    "seconds",
    "Time within which two reports of a start, an end or a compaction of one session count as one:"
    " hooks may be installed at several levels.",
)
LIMIT_PROBE_SECONDS = declare_threshold(
    900.0,
    "limits.probe_seconds",
    "seconds",
    "First wait after a usage limit whose end is unknown; it doubles.",
)
MAX_LIMIT_PROBE_SECONDS = declare_threshold(
    3600.0,
    "limits.max_probe_seconds",
    "seconds",
    "Longest wait after a usage limit whose end is unknown.",
)
RESET_MINUTE_MARGIN_SECONDS = declare_threshold(
    60.0,
    "limits.minute_margin_seconds",
    "seconds",
    "Added to a reset time given in minutes: 5pm may mean 17:00:59.",
)
RESET_SECOND_MARGIN_SECONDS = declare_threshold(
    1.0,
    "limits.second_margin_seconds",
    "seconds",
    "Added to a wait given in seconds, for the same reason.",
)
RESET_SHORT_SECONDS = declare_threshold(
    3600.0,
    "limits.short_seconds",
    "seconds",
    "Shortest plausible wait for a limit of a day or more; a shorter one is not believed.",
)
PROBED_CRASHES = declare_threshold(
    5,
    "restart.probed_crashes",
    "count",
    "Consecutive launches that fail at once before the next ones are probes.",
)
INSTANT_SECONDS = declare_threshold(
    180.0,
    "restart.instant_seconds",
    "seconds",
    "Run time below which a crash counts as a failure at once.",
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
    "Launches, or cycles, in a row that change a file before its changes stop being progress.",
)
PROGRESS_NUMBERED = declare_threshold(
    40,
    "progress.numbered",
    "count",
    "Launches, or cycles, in a row that change numbered files, as `out-17.txt` after `out-16.txt`,"
    " before these stop being progress.",
)
PROGRESS_NAMES = declare_threshold(
    10, "progress.names", "count", "Changed files of a launch, or a cycle, that the log names."
)
GUESSED_USD_READ = declare_threshold(
    3.0,
    "budget.guessed_usd_read",
    "dollars",
    "Price of a million tokens read by a launch that was killed before it reported its cost.",
)
GUESSED_USD_WRITTEN = declare_threshold(
    15.0,
    "budget.guessed_usd_written",
    "dollars",
    "Price of a million tokens written by such a launch.",
)
SPENDING_SHARE = declare_threshold(
    0.01,
    "budget.spending_share",
    "share",
    "Growth of a turn's cost, as a share of the cap or of the spending, that is recorded.",
)
UNTIL_SECONDS = declare_threshold(
    1800.0, "loop.until_seconds", "seconds", "Timeout of the `until:` command."
)
REVIEW_SECONDS = declare_threshold(3600.0, "loop.review_seconds", "seconds", "Timeout of a review.")
SHORT_CYCLE_SECONDS = declare_threshold(
    60.0,
    "loop.short_cycle_seconds",
    "seconds",
    "Average cycle length below which handover costs more than the work.",
)
REPORTS_KEPT = declare_threshold(
    500, "hooks.reports_kept", "count", "Reports of hooks that a second report is compared with."
)
QUESTIONS_KEPT = declare_threshold(
    20, "questions.kept", "count", "Questions that a snapshot keeps; the log has all of them."
)
QUESTIONS_A_LAUNCH = declare_threshold(
    5, "questions.a_launch", "count", "Refused calls of one launch that a person is asked about."
)
REFUSED_KEPT = declare_threshold(
    50, "questions.refused_kept", "count", "Calls, and refused calls, of a launch that are kept."
)
CALL_HELD_SECONDS = declare_threshold(
    2.0,
    "run.call_held_seconds",
    "seconds",
    "Time after which `run` prints a tool call that has not ended; until then it may be refused.",
)
QUESTION_CHARACTERS = declare_threshold(
    2_000,
    "questions.characters",
    "characters",
    "Part of a refused call's arguments that a question shows.",
)
CYCLES_KEPT = declare_threshold(
    50, "loop.cycles_kept", "count", "Ended cycles that a snapshot keeps; the log has all of them."
)
MEASURE_SECONDS = declare_threshold(
    20.0, "handoff.measure_seconds", "seconds", "Time a CLI has to report the size of its window."
)
MEASURE_TICK_SECONDS = declare_threshold(
    0.1, "handoff.measure_tick_seconds", "seconds", "Interval at which that CLI is checked."
)
MEASURE_LINES = declare_threshold(
    1_000, "handoff.measure_lines", "lines", "Lines of that CLI's output that are read."
)
HANDOFF_VAIN_SHARE = declare_threshold(
    0.875,
    "handoff.vain_share",
    "share",
    "Share of the threshold above which a fresh session has hardly any room.",
)
HANDOFFS_VAIN = declare_threshold(
    2,
    "handoff.vain",
    "count",
    "Consecutive handoffs without more room after which the agent stops.",
)
HANDOFFS_MANY = declare_threshold(
    3, "handoff.many", "count", "Handoffs in one cycle above which its work counts as too large."
)
HANDOFFS_MOST = declare_threshold(
    20,
    "handoff.most",
    "count",
    "Handoffs of one cycle after which a person is needed; they cost a day's work.",
)
HOOK_WORD_CHARACTERS = declare_threshold(
    80, "hooks.word_characters", "characters", "Part of a word from a hook's report that is kept."
)
WATCH_SILENCE_SHARE = declare_threshold(
    0.25,
    "watch.silence_share",
    "share",
    "Longest interval between checks of the watchdog, as a share of `watch.silence`.",
)
UNSEEN_END_SHARE = declare_threshold(
    0.1,
    "run.unseen_end_share",
    "share",
    "Share of its interval at which a process is checked if the kernel cannot report its end.",
)
