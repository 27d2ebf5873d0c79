"""Thresholds of files: the log, documents, git, the archive and what other programs wrote."""

from rekindle.thresholds import declare

SNAPSHOT_EVERY_BYTES = declare(
    64 * 1024,
    "store.snapshot_every_bytes",
    "bytes",
    "Log written since the last snapshot that makes a new one.",
)
COLD_LOG_BYTES = declare(
    1024 * 1024,
    "store.cold_log_bytes",
    "bytes",
    "Log read without a snapshot after which the reader itself keeps one.",
)
BATCH_EVENTS = declare(
    5_000, "store.batch_events", "count", "Events in memory at once while a long log is read."
)
SEAL_COMPACT_BYTES = declare(
    64 * 1024,
    "store.seal_compact_bytes",
    "bytes",
    "Size at which the file of an agent's seal is replaced by its last record.",
)
ASIDE_BYTES = declare(
    1024 * 1024,
    "store.aside_bytes",
    "bytes",
    "Size up to which records of an unknown kind are kept in `run/inbox.rejected`.",
)
LOCK_WAIT_SECONDS = declare(
    1.0,
    "store.lock_wait_seconds",
    "seconds",
    "Time a command waits for the agent's writer before it leaves its record to it.",
)
LOCK_POLL_SECONDS = declare(
    0.005,
    "store.lock_poll_seconds",
    "seconds",
    "Interval at which a command that waits for a lock tries again.",
)
FILE_BYTES = declare(
    64 * 1024 * 1024,
    "store.file_bytes",
    "bytes",
    "Largest file of an agent that is read at once; its log is read in pieces.",
)
RELAY_BYTES = declare(8_000_000, "relay.bytes", "bytes", "Largest file that is read as a relay.")
MANIFEST_BYTES = declare(
    8_000_000, "manifest.bytes", "bytes", "Largest rekindle.yaml that is read."
)
MANIFEST_CHARACTERS = declare(
    1_000_000, "manifest.characters", "characters", "Longest rekindle.yaml that is parsed."
)
MANIFEST_DEPTH = declare(50, "manifest.depth", "count", "Deepest nesting in rekindle.yaml.")
MANIFEST_NUMBER_CHARACTERS = declare(
    100, "manifest.number_characters", "characters", "Longest number in rekindle.yaml."
)
TEXT_BYTES = declare(
    1_000_000,
    "text.bytes",
    "bytes",
    "Largest file that is read as a prompt, as rules or as a system prompt.",
)
ADOPT_BYTES = declare(
    8_000_000, "adopt.bytes", "bytes", "Largest file that `adopt` reads from another loop."
)
ADOPT_DEPTH = declare(
    100, "adopt.depth", "count", "Deepest nesting of unknown fields that `adopt` accepts."
)
AUDIT_CALL_SECONDS = declare(
    2.0,
    "audit.call_seconds",
    "seconds",
    "Time one call of git has for the audit trail; a slower one leaves the trail behind.",
)
AUDIT_REST_SECONDS = declare(
    60.0,
    "audit.rest_seconds",
    "seconds",
    "Pause of the audit trail after a call of git was too slow.",
)
AUDIT_BATCH = declare(
    50, "audit.batch", "count", "Relays that one command adds to an audit trail that is behind."
)
AUDIT_TRIES = declare(
    3, "audit.tries", "count", "Attempts to commit while another process moves the audit branch."
)
GIT_KILL_SECONDS = declare(
    0.5, "git.kill_seconds", "seconds", "Time git has to exit after each signal."
)
GIT_ERROR_CHARACTERS = declare(
    1000, "git.error_characters", "characters", "Longest error message of git that is shown."
)
WORKTREE_CALL_SECONDS = declare(
    20.0,
    "worktree.call_seconds",
    "seconds",
    "Time git has to list the changes in an agent's folder.",
)
WORKTREE_NAMES = declare(
    1_000, "worktree.names", "count", "Changed files, or commits, that are read from git."
)
UNVERSIONED_FILES = declare(
    20_000,
    "worktree.unversioned_files",
    "count",
    "Files and folders that are looked at for changes in a folder without git.",
)
WORKSPACE_CALL_SECONDS = declare(
    120.0,
    "workspace.call_seconds",
    "seconds",
    "Time git has to read or write all files of a fleet agent's workspace.",
)
WORKSPACE_TRANSFER_SECONDS = declare(
    600.0,
    "workspace.transfer_seconds",
    "seconds",
    "Time git has to fetch a workspace from its remote, or to push it there.",
)
WORKSPACE_TRIES = declare(
    5,
    "workspace.tries",
    "count",
    "Attempts to claim a work branch while its former owner still pushes.",
)
REPLAY_CALL_SECONDS = declare(
    60.0,
    "replay.call_seconds",
    "seconds",
    "Time one call of git has while `replay` reads a whole history.",
)
ARCHIVE_STEP_BYTES = declare(
    8 * 1024 * 1024,
    "archive.step_bytes",
    "bytes",
    "Part of a transcript that is read before the archive saves it.",
)
ARCHIVE_EVERY_SECONDS = declare(
    3 * 3600.0,
    "archive.every_seconds",
    "seconds",
    "Interval at which the watchdog archives transcripts of an agent without a supervisor.",
)
ARCHIVE_FILES = declare(
    10_000,
    "archive.files",
    "count",
    "Folders, and files, of sub-agents that are looked at for one session.",
)
JSON_LINE_BYTES = declare(
    32 * 1024 * 1024,
    "transcript.json_line_bytes",
    "bytes",
    "Longest line of a CLI that is read as JSON.",
)
TRANSCRIPT_LINE_BYTES = declare(
    4 * 1024 * 1024,
    "transcript.line_bytes",
    "bytes",
    "Longest line of a transcript that is read as turns; only blobs are longer.",
)
TRANSCRIPT_LINE_OBJECTS = declare(
    200_000,
    "transcript.line_objects",
    "count",
    "Objects and lists in one line of a transcript; a line with more is not read.",
)
TRANSCRIPT_FIRST_BYTES = declare(
    4 * 1024,
    "transcript.first_bytes",
    "bytes",
    "Part of a transcript's first line that is read to recognize it.",
)
TRANSCRIPT_BEGINNING_BYTES = declare(
    4 * 1024 * 1024,
    "transcript.beginning_bytes",
    "bytes",
    "Beginning of a transcript that is read to see which session it belongs to.",
)
TRANSCRIPT_TAIL_BYTES = declare(
    256 * 1024,
    "transcript.tail_bytes",
    "bytes",
    "End of a transcript that is read for the latest activity.",
)
TRANSCRIBED_BYTES = declare(
    4 * 1024 * 1024,
    "transcript.transcribed_bytes",
    "bytes",
    "Compressed output of one launch that is kept of a program without hooks, before its end.",
)
TRANSCRIBED_EVERY_SECONDS = declare(
    30.0,
    "transcript.transcribed_every_seconds",
    "seconds",
    "Interval at which the output of a program without hooks is kept, and counts as activity.",
)
TRANSCRIBED_TURNS = declare(
    50,
    "transcript.transcribed_turns",
    "count",
    "Turns of such output after which they are kept at once.",
)
