"""Thresholds for files: the log, documents, git, the archive and other programs' files."""

from rekindle.thresholds import declare_threshold

SNAPSHOT_EVERY_BYTES = declare_threshold(
    64 * 1024,
    "store.snapshot_every_bytes",
    "bytes",
    "Log growth after which Rekindle takes a new snapshot.",
)
COLD_LOG_BYTES = declare_threshold(
    1024 * 1024,
    "store.cold_log_bytes",
    "bytes",
    "Log size at which a reader first saves a snapshot.",
)
BATCH_EVENTS = declare_threshold(
    5_000,
    "store.batch_events",
    "count",
    "Maximum number of events to keep in memory while reading a long log.",
)
SEAL_COMPACT_BYTES = declare_threshold(
    64 * 1024,
    "store.seal_compact_bytes",
    "bytes",
    "Size at which Rekindle reduces an agent's seal file to its last record.",
)
ASIDE_BYTES = declare_threshold(
    1024 * 1024,
    "store.aside_bytes",
    "bytes",
    "Maximum size of `run/inbox.rejected`, which contains records of an unknown kind.",
)
REJECTED_FILES = declare_threshold(
    10,
    "store.rejected_files",
    "count",
    "Number of `*.rejected` copies to keep for each file. Older copies are removed.",
)
LOCK_WAIT_SECONDS = declare_threshold(
    1.0,
    "store.lock_wait_seconds",
    "seconds",
    "Maximum time that a command waits for the agent's lock before it leaves its record in the "
    "inbox.",
)
EDIT_LOCK_SECONDS = declare_threshold(
    10.0,
    "store.edit_lock_seconds",
    "seconds",
    "Maximum time that a command waits for another command that is changing rekindle.yaml or the "
    "hooks.",
)
LOCK_POLL_SECONDS = declare_threshold(
    0.005,
    "store.lock_poll_seconds",
    "seconds",
    "Interval at which a waiting command retries a lock.",
)
FILE_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "store.file_bytes",
    "bytes",
    "Maximum size of an agent's file that is read in one piece. The log is read in pieces.",
)
RELAY_BYTES = declare_threshold(8_000_000, "relay.bytes", "bytes", "Maximum size of a relay file.")
MANIFEST_BYTES = declare_threshold(
    8_000_000, "manifest.bytes", "bytes", "Maximum size of rekindle.yaml."
)
MANIFEST_CHARACTERS = declare_threshold(
    1_000_000, "manifest.characters", "characters", "Maximum length of rekindle.yaml."
)
MANIFEST_DEPTH = declare_threshold(
    50, "manifest.depth", "count", "Maximum nesting depth in rekindle.yaml."
)
MANIFEST_NUMBER_CHARACTERS = declare_threshold(
    100, "manifest.number_characters", "characters", "Maximum length of a number in rekindle.yaml."
)
TEXT_BYTES = declare_threshold(
    1_000_000,
    "text.bytes",
    "bytes",
    "Maximum size of a file that contains a prompt, rules or a system prompt.",
)
ADOPT_BYTES = declare_threshold(
    8_000_000,
    "adopt.bytes",
    "bytes",
    "Maximum size of a file that `adopt` reads from another loop.",
)
ADOPT_DEPTH = declare_threshold(
    100, "adopt.depth", "count", "Maximum nesting depth of unknown fields that `adopt` accepts."
)
AUDIT_CALL_SECONDS = declare_threshold(
    2.0,
    "audit.call_seconds",
    "seconds",
    "Timeout for each of the audit trail's git calls. The trail catches up after a timeout.",
)
AUDIT_REST_SECONDS = declare_threshold(
    60.0,
    "audit.rest_seconds",
    "seconds",
    "Pause before the audit trail's next git call after a timeout.",
)
AUDIT_BATCH = declare_threshold(
    50,
    "audit.batch",
    "count",
    "Maximum number of missing relays that one command adds to the audit trail.",
)
AUDIT_TRIES = declare_threshold(
    3,
    "audit.tries",
    "count",
    "Maximum number of attempts to commit while another process is updating the audit branch.",
)
GIT_KILL_SECONDS = declare_threshold(
    0.5, "git.kill_seconds", "seconds", "How long to wait for git to exit after each signal."
)
GIT_ERROR_CHARACTERS = declare_threshold(
    1000,
    "git.error_characters",
    "characters",
    "Maximum length of a git error message in Rekindle's output.",
)
WORKTREE_CALL_SECONDS = declare_threshold(
    20.0,
    "worktree.call_seconds",
    "seconds",
    "Timeout for the git call that lists the changes in an agent's folder.",
)
WORKTREE_NAMES = declare_threshold(
    1_000,
    "worktree.names",
    "count",
    "Maximum number of changed files and of commits to read from git.",
)
UNVERSIONED_FILES = declare_threshold(
    20_000,
    "worktree.unversioned_files",
    "count",
    "Maximum number of files and folders to check for changes in a folder that is not a git "
    "repository.",
)
WORKSPACE_CALL_SECONDS = declare_threshold(
    120.0,
    "workspace.call_seconds",
    "seconds",
    "Timeout for a git call that reads or writes all files in an agent's workspace on a fleet.",
)
WORKSPACE_TRANSFER_SECONDS = declare_threshold(
    600.0,
    "workspace.transfer_seconds",
    "seconds",
    "Timeout for a git call that fetches a workspace from its remote or pushes to it.",
)
MIRROR_FRESH_SECONDS = declare_threshold(
    60.0,
    "mirror.fresh_seconds",
    "seconds",
    "Time after a fetch during which new clones on a host do not fetch from the remote again.",
)
PUSH_PERIOD_SECONDS = declare_threshold(
    60.0,
    "push.period_seconds",
    "seconds",
    "Period in which a host pushes at most `fleet.pushes_per_minute` times to a remote.",
)
PUSH_PAUSE_SECONDS = declare_threshold(
    5.0,
    "push.pause_seconds",
    "seconds",
    "Pause after a remote refused a push because of its limit. Each further refusal doubles it.",
)
MAX_PUSH_PAUSE_SECONDS = declare_threshold(
    60.0, "push.max_pause_seconds", "seconds", "Longest pause after such a refusal."
)
PUSH_PATIENCE_SECONDS = declare_threshold(
    150.0,
    "push.patience_seconds",
    "seconds",
    "How long a push waits for its turn. After that, the agent's work is reported as not pushed.",
)
PUSH_POLL_SECONDS = declare_threshold(
    0.05,
    "push.poll_seconds",
    "seconds",
    "Interval at which a process looks for the answer to its push.",
)
PUSH_BATCH = declare_threshold(
    100, "push.batch", "count", "Maximum number of agents whose work is pushed together."
)
PUSH_SEARCH_BYTES = declare_threshold(
    256 * 1024,
    "push.search_bytes",
    "bytes",
    "Maximum size of a file that a host searches for keys before a push.",
)
PUSH_SEARCH_FILES = declare_threshold(
    5_000,
    "push.search_files",
    "count",
    "Maximum number of new files that a host searches for keys before a push.",
)
PUSH_SEARCH_GROUP = declare_threshold(
    100, "push.search_group", "count", "Number of files that are read together for this search."
)
WORK_SNAPSHOTS = declare_threshold(
    50,
    "workspace.snapshots",
    "count",
    "Number of snapshots on an agent's work branch after which one snapshot replaces them.",
)
WORKSPACE_TRIES = declare_threshold(
    5,
    "workspace.tries",
    "count",
    "Maximum number of attempts to claim a work branch while its former owner is still pushing "
    "to it.",
)
WORKSPACES_AT_ONCE = declare_threshold(
    2,
    "workspace.at_once",
    "count",
    "Number of agents' clones and work trees that a user's supervisors create at the same time.",
)
SNAPSHOT_SECONDS = declare_threshold(
    20.0,
    "snapshots.seconds",
    "seconds",
    "Maximum time for a snapshot of the work tree. After that, the agent continues without one.",
)
SNAPSHOT_FILE_BYTES = declare_threshold(
    50_000_000,
    "snapshots.file_bytes",
    "bytes",
    "Maximum size of an untracked file in a snapshot. Larger files are only listed by name.",
)
SNAPSHOT_NAMES = declare_threshold(
    1_000,
    "snapshots.names",
    "count",
    "Maximum number of omitted files that a snapshot lists by name. The others are only counted.",
)
SNAPSHOTS_KEPT = declare_threshold(
    50,
    "snapshots.kept",
    "count",
    "Number of recent snapshots to keep for each agent.",
)
SNAPSHOT_DAYS = declare_threshold(
    30,
    "snapshots.days",
    "days",
    "Number of days for which Rekindle also keeps each day's last snapshot.",
)
REWIND_SECONDS = declare_threshold(
    600.0,
    "snapshots.rewind_seconds",
    "seconds",
    "Maximum duration of a rewind.",
)
REPLAY_CALL_SECONDS = declare_threshold(
    60.0,
    "replay.call_seconds",
    "seconds",
    "Timeout for a git call when `replay` reads a whole history.",
)
ARCHIVE_STEP_BYTES = declare_threshold(
    8 * 1024 * 1024,
    "archive.step_bytes",
    "bytes",
    "Number of transcript bytes that the archive reads before it saves them.",
)
ARCHIVE_EVERY_SECONDS = declare_threshold(
    3 * 3600.0,
    "archive.every_seconds",
    "seconds",
    "Interval at which the watchdog archives transcripts for agents without a supervisor.",
)
SEARCH_WAIT_SECONDS = declare_threshold(
    30,
    "search.wait_seconds",
    "seconds",
    "Time to wait for another process that updates the search index.",
)
ARCHIVE_FILES = declare_threshold(
    10_000,
    "archive.files",
    "count",
    "Maximum number of sub-agent folders to search per session, and of files to search in each.",
)
JSON_LINE_BYTES = declare_threshold(
    32 * 1024 * 1024,
    "transcript.json_line_bytes",
    "bytes",
    "Maximum size of a CLI output line to parse as JSON.",
)
TRANSCRIPT_LINE_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.line_bytes",
    "bytes",
    "Maximum size of a transcript line to parse. Only lines with binary data are longer.",
)
TRANSCRIPT_LINE_OBJECTS = declare_threshold(
    200_000,
    "transcript.line_objects",
    "count",
    "Maximum number of objects and lists in a transcript line. Lines with more are skipped.",
)
TRANSCRIPT_FIRST_BYTES = declare_threshold(
    4 * 1024,
    "transcript.first_bytes",
    "bytes",
    "Number of bytes to read from a transcript's first line in order to recognize its format.",
)
TRANSCRIPT_BEGINNING_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.beginning_bytes",
    "bytes",
    "Maximum number of bytes at the start of a transcript to search for its session id.",
)
TRANSCRIPT_TAIL_BYTES = declare_threshold(
    256 * 1024,
    "transcript.tail_bytes",
    "bytes",
    "Maximum number of bytes at the end of a transcript to search for the latest activity.",
)
CARRIED_TRANSCRIPT_BYTES = declare_threshold(
    256 * 1024 * 1024,
    "transcript.carried_bytes",
    "bytes",
    "Maximum size of a transcript that is copied to another account. Otherwise, a fresh session "
    "continues.",
)
TRANSCRIBED_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.transcribed_bytes",
    "bytes",
    "Maximum compressed size of one launch's archived output, for a program without hooks. The "
    "end of the output is always kept.",
)
TRANSCRIBED_EVERY_SECONDS = declare_threshold(
    30.0,
    "transcript.transcribed_every_seconds",
    "seconds",
    "Interval at which Rekindle saves output from a program without hooks and counts it as "
    "activity.",
)
TRANSCRIBED_LIVE_SECONDS = declare_threshold(
    1.0,
    "transcript.transcribed_live_seconds",
    "seconds",
    "Interval at which `rekindle logs -f` shows new output from a program without hooks before it "
    "is saved.",
)
TRANSCRIBED_TURNS = declare_threshold(
    50,
    "transcript.transcribed_turns",
    "count",
    "Number of turns after which output from a program without hooks is saved immediately.",
)
