"""Thresholds for files: the log, documents, git, the archive and files of other programs."""

from rekindle.thresholds import declare_threshold

SNAPSHOT_EVERY_BYTES = declare_threshold(
    64 * 1024,
    "store.snapshot_every_bytes",
    "bytes",
    "Growth of the log since the last snapshot after which Rekindle makes a new one.",
)
COLD_LOG_BYTES = declare_threshold(
    1024 * 1024,
    "store.cold_log_bytes",
    "bytes",
    "Minimum size of a log without a snapshot at which a reader saves a snapshot.",
)
BATCH_EVENTS = declare_threshold(
    5_000,
    "store.batch_events",
    "count",
    "Maximum number of events in memory while a long log is read.",
)
SEAL_COMPACT_BYTES = declare_threshold(
    64 * 1024,
    "store.seal_compact_bytes",
    "bytes",
    "Size at which the file with an agent's seal is reduced to its last record.",
)
ASIDE_BYTES = declare_threshold(
    1024 * 1024,
    "store.aside_bytes",
    "bytes",
    "Maximum size of `run/inbox.rejected`, which keeps records of an unknown kind.",
)
REJECTED_FILES = declare_threshold(
    10,
    "store.rejected_files",
    "count",
    "Number of `*.rejected` copies to keep of each file; older copies are removed.",
)
LOCK_WAIT_SECONDS = declare_threshold(
    1.0,
    "store.lock_wait_seconds",
    "seconds",
    "Maximum time that a command waits for the agent's writer before it leaves its record in the "
    "inbox.",
)
EDIT_LOCK_SECONDS = declare_threshold(
    10.0,
    "store.edit_lock_seconds",
    "seconds",
    "Maximum time that a command waits while another one changes rekindle.yaml or the hooks.",
)
LOCK_POLL_SECONDS = declare_threshold(
    0.005,
    "store.lock_poll_seconds",
    "seconds",
    "Interval at which a command that is waiting for a lock tries again.",
)
FILE_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "store.file_bytes",
    "bytes",
    "Maximum size of an agent's file that is read at once; the log is read in pieces.",
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
    "Maximum size of a file with a prompt, rules or a system prompt.",
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
    "Timeout of a git call for the audit trail; after a timeout, the trail catches up later.",
)
AUDIT_REST_SECONDS = declare_threshold(
    60.0,
    "audit.rest_seconds",
    "seconds",
    "Pause of the audit trail after a git call that timed out.",
)
AUDIT_BATCH = declare_threshold(
    50,
    "audit.batch",
    "count",
    "Maximum number of relays that one command adds to an outdated audit trail.",
)
AUDIT_TRIES = declare_threshold(
    3,
    "audit.tries",
    "count",
    "Maximum number of attempts to commit while another process moves the audit branch.",
)
GIT_KILL_SECONDS = declare_threshold(
    0.5, "git.kill_seconds", "seconds", "Timeout for git to exit after each signal."
)
GIT_ERROR_CHARACTERS = declare_threshold(
    1000,
    "git.error_characters",
    "characters",
    "Maximum length of a git error message that is shown.",
)
WORKTREE_CALL_SECONDS = declare_threshold(
    20.0,
    "worktree.call_seconds",
    "seconds",
    "Timeout of the git call that lists the changes in an agent's folder.",
)
WORKTREE_NAMES = declare_threshold(
    1_000,
    "worktree.names",
    "count",
    "Maximum number of changed files, and of commits, to read from git.",
)
UNVERSIONED_FILES = declare_threshold(
    20_000,
    "worktree.unversioned_files",
    "count",
    "Maximum number of files and folders to check for changes in a folder without git.",
)
WORKSPACE_CALL_SECONDS = declare_threshold(
    120.0,
    "workspace.call_seconds",
    "seconds",
    "Timeout of a git call that reads or writes all files of a fleet agent's workspace.",
)
WORKSPACE_TRANSFER_SECONDS = declare_threshold(
    600.0,
    "workspace.transfer_seconds",
    "seconds",
    "Timeout of a git call that fetches a workspace from its remote or pushes it there.",
)
WORKSPACE_TRIES = declare_threshold(
    5,
    "workspace.tries",
    "count",
    "Maximum number of attempts to claim a work branch while its former owner is still pushing.",
)
REPLAY_CALL_SECONDS = declare_threshold(
    60.0,
    "replay.call_seconds",
    "seconds",
    "Timeout of a git call while `replay` reads a whole history.",
)
ARCHIVE_STEP_BYTES = declare_threshold(
    8 * 1024 * 1024,
    "archive.step_bytes",
    "bytes",
    "Number of bytes to read from a transcript before the archive saves them.",
)
ARCHIVE_EVERY_SECONDS = declare_threshold(
    3 * 3600.0,
    "archive.every_seconds",
    "seconds",
    "Interval at which the watchdog archives transcripts of an agent without a supervisor.",
)
ARCHIVE_FILES = declare_threshold(
    10_000,
    "archive.files",
    "count",
    "Maximum number of sub-agent folders, and of files in them, to search for one session.",
)
JSON_LINE_BYTES = declare_threshold(
    32 * 1024 * 1024,
    "transcript.json_line_bytes",
    "bytes",
    "Maximum size of a line from a CLI to parse as JSON.",
)
TRANSCRIPT_LINE_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.line_bytes",
    "bytes",
    "Maximum size of a transcript line to read as turns; only lines with binary data are longer.",
)
TRANSCRIPT_LINE_OBJECTS = declare_threshold(
    200_000,
    "transcript.line_objects",
    "count",
    "Maximum number of objects and lists in a transcript line; lines with more are skipped.",
)
TRANSCRIPT_FIRST_BYTES = declare_threshold(
    4 * 1024,
    "transcript.first_bytes",
    "bytes",
    "Number of bytes to read from a transcript's first line, to recognize the transcript.",
)
TRANSCRIPT_BEGINNING_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.beginning_bytes",
    "bytes",
    "Maximum number of bytes at the start of a transcript to search for its session.",
)
TRANSCRIPT_TAIL_BYTES = declare_threshold(
    256 * 1024,
    "transcript.tail_bytes",
    "bytes",
    "Maximum number of bytes at the end of a transcript to search for the latest activity.",
)
TRANSCRIBED_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.transcribed_bytes",
    "bytes",
    "Maximum compressed size of the archived output of one launch of a program without hooks; the "
    "end of the output is always kept.",
)
TRANSCRIBED_EVERY_SECONDS = declare_threshold(
    30.0,
    "transcript.transcribed_every_seconds",
    "seconds",
    "Interval at which the output of a program without hooks is saved and counts as activity.",
)
TRANSCRIBED_LIVE_SECONDS = declare_threshold(
    1.0,
    "transcript.transcribed_live_seconds",
    "seconds",
    "Interval at which `rekindle logs -f` shows unsaved output of a program without hooks.",
)
TRANSCRIBED_TURNS = declare_threshold(
    50,
    "transcript.transcribed_turns",
    "count",
    "Number of turns after which output of a program without hooks is saved at once.",
)
