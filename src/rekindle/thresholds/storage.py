"""Thresholds of files: the log, documents, git, the archive and files of other programs."""

from rekindle.thresholds import declare_threshold

SNAPSHOT_EVERY_BYTES = declare_threshold(
    64 * 1024,
    "store.snapshot_every_bytes",
    "bytes",
    "Size of the log since the last snapshot at which a new one is made.",
)
COLD_LOG_BYTES = declare_threshold(
    1024 * 1024,
    "store.cold_log_bytes",
    "bytes",
    "Size of a log read without a snapshot at which the reader saves one.",
)
BATCH_EVENTS = declare_threshold(
    5_000, "store.batch_events", "count", "Events in memory at once while a long log is read."
)
SEAL_COMPACT_BYTES = declare_threshold(
    64 * 1024,
    "store.seal_compact_bytes",
    "bytes",
    "Size at which the file of an agent's seal is replaced by its last record.",
)
ASIDE_BYTES = declare_threshold(
    1024 * 1024,
    "store.aside_bytes",
    "bytes",
    "Size up to which records of an unknown kind are kept in `run/inbox.rejected`.",
)
REJECTED_FILES = declare_threshold(
    10,
    "store.rejected_files",
    "count",
    "Newest `*.rejected` files that are kept of each file; older ones are removed.",
)
LOCK_WAIT_SECONDS = declare_threshold(
    1.0,
    "store.lock_wait_seconds",
    "seconds",
    "Time a command waits for the agent's writer before it leaves its record to it.",
)
EDIT_LOCK_SECONDS = declare_threshold(
    10.0,
    "store.edit_lock_seconds",
    "seconds",
    "Time a command waits for another one that changes rekindle.yaml or the hooks.",
)
LOCK_POLL_SECONDS = declare_threshold(
    0.005,
    "store.lock_poll_seconds",
    "seconds",
    "Interval at which a command that waits for a lock tries again.",
)
FILE_BYTES = declare_threshold(
    64 * 1024 * 1024,
    "store.file_bytes",
    "bytes",
    "Largest file of an agent that is read at once; its log is read in pieces.",
)
RELAY_BYTES = declare_threshold(
    8_000_000, "relay.bytes", "bytes", "Largest file that is read as a relay."
)
MANIFEST_BYTES = declare_threshold(
    8_000_000, "manifest.bytes", "bytes", "Largest rekindle.yaml that is read."
)
MANIFEST_CHARACTERS = declare_threshold(
    1_000_000, "manifest.characters", "characters", "Longest rekindle.yaml that is parsed."
)
MANIFEST_DEPTH = declare_threshold(
    50, "manifest.depth", "count", "Deepest nesting in rekindle.yaml."
)
MANIFEST_NUMBER_CHARACTERS = declare_threshold(
    100, "manifest.number_characters", "characters", "Longest number in rekindle.yaml."
)
TEXT_BYTES = declare_threshold(
    1_000_000,
    "text.bytes",
    "bytes",
    "Largest file that is read as a prompt, as rules or as a system prompt.",
)
ADOPT_BYTES = declare_threshold(
    8_000_000, "adopt.bytes", "bytes", "Largest file that `adopt` reads from another loop."
)
ADOPT_DEPTH = declare_threshold(
    100, "adopt.depth", "count", "Deepest nesting of unknown fields that `adopt` accepts."
)
AUDIT_CALL_SECONDS = declare_threshold(
    2.0,
    "audit.call_seconds",
    "seconds",
    "Timeout of a git call for the audit trail; a slower one leaves the trail behind.",
)
AUDIT_REST_SECONDS = declare_threshold(
    60.0,
    "audit.rest_seconds",
    "seconds",
    "Pause of the audit trail after a git call that was too slow.",
)
AUDIT_BATCH = declare_threshold(
    50, "audit.batch", "count", "Relays that one command adds to an audit trail that is behind."
)
AUDIT_TRIES = declare_threshold(
    3, "audit.tries", "count", "Attempts to commit while another process moves the audit branch."
)
GIT_KILL_SECONDS = declare_threshold(
    0.5, "git.kill_seconds", "seconds", "Time git has to exit after each signal."
)
GIT_ERROR_CHARACTERS = declare_threshold(
    1000, "git.error_characters", "characters", "Longest error message of git that is shown."
)
WORKTREE_CALL_SECONDS = declare_threshold(
    20.0,
    "worktree.call_seconds",
    "seconds",
    "Time git has to list the changes in an agent's folder.",
)
WORKTREE_NAMES = declare_threshold(
    1_000, "worktree.names", "count", "Changed files, or commits, that are read from git."
)
UNVERSIONED_FILES = declare_threshold(
    20_000,
    "worktree.unversioned_files",
    "count",
    "Files and folders that are checked for changes in a folder without git.",
)
WORKSPACE_CALL_SECONDS = declare_threshold(
    120.0,
    "workspace.call_seconds",
    "seconds",
    "Time git has to read or write all files of a fleet agent's workspace.",
)
WORKSPACE_TRANSFER_SECONDS = declare_threshold(
    600.0,
    "workspace.transfer_seconds",
    "seconds",
    "Time git has to fetch a workspace from its remote, or to push it there.",
)
WORKSPACE_TRIES = declare_threshold(
    5,
    "workspace.tries",
    "count",
    "Attempts to claim a work branch while its former owner still pushes.",
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
    "Part of a transcript that is read before the archive saves it.",
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
    "Folders, and files, of sub-agents that are searched for one session.",
)
JSON_LINE_BYTES = declare_threshold(
    32 * 1024 * 1024,
    "transcript.json_line_bytes",
    "bytes",
    "Longest line of a CLI that is read as JSON.",
)
TRANSCRIPT_LINE_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.line_bytes",
    "bytes",
    "Longest line of a transcript that is read as turns; only blobs are longer.",
)
TRANSCRIPT_LINE_OBJECTS = declare_threshold(
    200_000,
    "transcript.line_objects",
    "count",
    "Objects and lists in one line of a transcript; a line with more is not read.",
)
TRANSCRIPT_FIRST_BYTES = declare_threshold(
    4 * 1024,
    "transcript.first_bytes",
    "bytes",
    "Part of a transcript's first line that is read to recognize it.",
)
TRANSCRIPT_BEGINNING_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.beginning_bytes",
    "bytes",
    "Part of a transcript's start that is read to find its session.",
)
TRANSCRIPT_TAIL_BYTES = declare_threshold(
    256 * 1024,
    "transcript.tail_bytes",
    "bytes",
    "End of a transcript that is read for the latest activity.",
)
TRANSCRIBED_BYTES = declare_threshold(
    4 * 1024 * 1024,
    "transcript.transcribed_bytes",
    "bytes",
    "Compressed output of one launch that is kept of a program without hooks, before its end.",
)
TRANSCRIBED_EVERY_SECONDS = declare_threshold(
    30.0,
    "transcript.transcribed_every_seconds",
    "seconds",
    "Interval at which the output of a program without hooks is kept, and counts as activity.",
)
TRANSCRIBED_LIVE_SECONDS = declare_threshold(
    1.0,
    "transcript.transcribed_live_seconds",
    "seconds",
    "Interval at which such output is shown to `rekindle logs -f`, before it is kept.",
)
TRANSCRIBED_TURNS = declare_threshold(
    50,
    "transcript.transcribed_turns",
    "count",
    "Turns of such output after which they are kept at once.",
)
