"""Where each CLI keeps its own sessions, and which of its processes runs which session."""

import hashlib
import re
from collections.abc import Callable, Iterable

import msgspec

from rekindle.harnesses.untrusted_json import parse_object, to_mapping, to_uuid
from rekindle.thresholds.keep_limits import CLAUDE_PROJECT_CHARACTERS


class SessionFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one CLI. All paths are relative to its own folder."""

    variable: str
    """Environment variable with the location of the CLI's own folder."""
    folder: str
    """Name of the CLI's own folder in the user's home."""
    is_inside: bool = False
    """Whether the variable names the folder that contains the CLI's own folder."""
    programs: tuple[str, ...]
    """Names of the CLI's program."""
    pattern: str
    """Glob pattern for transcripts."""
    identify: Callable[[Iterable[bytes], str], str]
    """Return the id of the session that a transcript begins, or "" if it is not in the folder."""
    place: Callable[[str, str], str]
    """Return the path of a transcript for a folder. It gets the folder and the file's name."""
    ends_turn: Callable[[bytes], bool | None] = lambda _: None
    """Return whether the agent's turn is over after a line, or None if the line does not say so."""
    is_late: bool = False
    """Whether the CLI writes a tool call only after the call has ended."""
    mark: str = ""
    """File that a process writes about its session, with `{pid}` for its process id."""
    lock: str = ""
    """File that a process has open while it runs a session, with `{session}` for the id."""
    server: str = ""
    """Argument of a background server that runs sessions for other processes of the CLI."""


class ProcessMark(msgspec.Struct, frozen=True, rename="camel"):
    """What Claude Code writes about a running process."""

    session_id: str
    pid: int
    proc_start: str = ""
    """Start time of the process, in the kernel's unit."""
    status: str = ""
    """`idle` while no turn is under way."""


_CONTINUING = (None, "tool_use", "pause_turn")
"""Values of Claude Code's `stop_reason` after which the turn continues."""
_CODEX_TURN = re.compile(rb'"(?:task_started|task_complete|turn_aborted|output_text)"')


def _make_project_name(folder: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", folder)


def _identify_claude(lines: Iterable[bytes], folder: str) -> str:
    session = ""
    for record in map(parse_object, lines):
        session = session or to_uuid(record.get("sessionId"))
        if record.get("cwd"):
            is_own = record.get("cwd") == folder and not record.get("isSidechain")
            return session if is_own else ""
    return ""


def _ends_claude_turn(line: bytes) -> bool | None:
    if b'"assistant"' not in line:
        return None
    record = parse_object(line)
    if record.get("type") != "assistant" or record.get("isSidechain") is True:
        return None
    return to_mapping(record.get("message")).get("stop_reason") not in _CONTINUING


def _place_claude(folder: str, name: str) -> str:
    project = _make_project_name(folder)
    return f"projects/{project}/{name}" if len(project) <= CLAUDE_PROJECT_CHARACTERS else ""


def _identify_codex(lines: Iterable[bytes], folder: str) -> str:
    for line in lines:
        record = parse_object(line)
        meta = to_mapping(record.get("payload"))
        is_own = record.get("type") == "session_meta" and meta.get("cwd") == folder
        # A sub-agent's rollout names its parent.
        return to_uuid(meta.get("id")) if is_own and b'"parent_thread_id":"' not in line else ""
    return ""


def _ends_codex_turn(line: bytes) -> bool | None:
    if not _CODEX_TURN.search(line):
        return None
    record = parse_object(line)
    match record.get("type"), to_mapping(record.get("payload")).get("type"):
        case "event_msg", "task_complete" | "turn_aborted":
            return True
        case ("event_msg", "task_started") | ("response_item", "message"):
            return False
    return None


def _place_codex(folder: str, name: str) -> str:  # noqa: ARG001 - part of the interface
    found = re.match(r"rollout-(\d{4})-(\d\d)-(\d\d)T", name)
    return f"sessions/{'/'.join(found.groups())}/{name}" if found else ""


def hash_folder(folder: str) -> str:
    """Return the name that Gemini CLI gives to a folder in its session files."""
    return hashlib.sha256(folder.encode()).hexdigest()


def _identify_gemini(lines: Iterable[bytes], folder: str) -> str:
    for record in map(parse_object, lines):
        is_own = record.get("projectHash") == hash_folder(folder)
        return to_uuid(record.get("sessionId")) if is_own and record.get("kind") == "main" else ""
    return ""


SESSION_FILES = {
    "claude-code": SessionFiles(
        variable="CLAUDE_CONFIG_DIR",
        folder=".claude",
        programs=("claude",),
        pattern="projects/*/*.jsonl",
        identify=_identify_claude,
        place=_place_claude,
        ends_turn=_ends_claude_turn,
        mark="sessions/{pid}.json",
    ),
    "codex": SessionFiles(
        variable="CODEX_HOME",
        folder=".codex",
        programs=("codex",),
        pattern="sessions/*/*/*/rollout-*.jsonl",
        identify=_identify_codex,
        place=_place_codex,
        ends_turn=_ends_codex_turn,
        lock="thread-writer-locks/{session}.lock",
        server="app-server",
    ),
    "gemini": SessionFiles(
        variable="GEMINI_CLI_HOME",
        folder=".gemini",
        is_inside=True,
        programs=("gemini",),
        pattern="tmp/*/chats/session-*.jsonl",
        identify=_identify_gemini,
        place=lambda folder, name: f"tmp/{hash_folder(folder)}/chats/{name}",
        is_late=True,
    ),
}
"""The CLIs whose sessions `rekindle keep` can continue, by harness."""
