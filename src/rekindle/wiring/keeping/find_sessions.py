"""Find the sessions in a folder that a person started, and their processes."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents.transcripts.turns import normalize_time
from rekindle.errors import RekindleError
from rekindle.flows.transcripts import transcript_files
from rekindle.harnesses.session_files import SESSION_FILES, ProcessMark, SessionFiles
from rekindle.policy.keeping.session_match import CliProcess, SessionProcesses, match_processes
from rekindle.policy.keeping.session_state import (
    SessionState,
    TranscriptLine,
    read_state,
)
from rekindle.stores.files import FileStore
from rekindle.system.files import durable_files
from rekindle.system.processes import cli_processes, launch_processes
from rekindle.thresholds.keep_limits import KEEP_QUIET_SECONDS, SESSIONS_SEARCHED
from rekindle.wiring.open_store import HARNESSES

_IDLE = "idle"


class FoundSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of an agent CLI."""

    session: str
    harness: str
    transcript: str
    changed: float
    """Time at which the transcript last changed, in seconds since 1970."""
    processes: SessionProcesses | None = None
    """The session's processes; None if it is not running, as far as known."""
    doubtful: tuple[tuple[int, int], ...] = ()
    """Processes of the CLI in this folder that may run this session or another one."""

    @property
    def is_running(self) -> bool:
        return self.processes is not None

    @property
    def pids(self) -> tuple[int, ...]:
        found = self.processes
        return tuple(pid for pid, _ in found.own) if found else ()


def find_home(files: SessionFiles) -> Path:
    """Return the CLI's own folder, with links resolved."""
    named = os.environ.get(files.variable)
    if not named:
        return (Path.home() / files.folder).resolve()
    return (Path(named) / files.folder if files.is_inside else Path(named)).resolve()


def find_sessions(folder: Path, reported: Mapping[str, str] | None = None) -> list[FoundSession]:
    """Return the sessions in a folder, running ones first and then the newest.

    `reported` maps processes to the sessions that hooks reported.
    """
    found = [
        session
        for harness, files in SESSION_FILES.items()
        for session in _find_cli_sessions(harness, files, folder, reported or {})
    ]
    return sorted(found, key=lambda session: (not session.is_running, -session.changed))


def read_known_sessions(
    store: FileStore, names: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the sessions that hooks reported, by process, and the agents of launched sessions."""
    reported: dict[str, str] = {}
    agents: dict[str, str] = {}
    for name in names:
        with suppress(RekindleError):
            projection = store.read(name).projection
            for session, life in projection.lives.items():
                if life.process and life.is_open:
                    reported[life.process] = session
            agents |= {record.session: name for record in projection.attempts.values()}
    return reported, agents


def read_session_state(found: FoundSession) -> SessionState:
    """Return what a session is doing, from its whole transcript and its process."""
    harness = HARNESSES[found.harness]
    lines = transcript_files.read_lines(found.transcript)
    files = SESSION_FILES[found.harness]
    state = read_state(
        TranscriptLine(harness.read_transcript(line), files.ends_turn(line)) for line in lines
    )
    if not found.processes:
        return state
    if found.processes.status == _IDLE:
        # The CLI says so, even if the last turn was interrupted.
        return msgspec.structs.replace(state, is_working=False, call="")
    if found.processes.status or (files.is_late and _may_be_in_call(found, state)):
        return msgspec.structs.replace(state, is_working=True)
    return state


def _may_be_in_call(found: FoundSession, state: SessionState) -> bool:
    """Return whether a session may be in a tool call that is not in its transcript yet.

    It has a child process that started after the last prompt, or has only just written something.
    Older children are servers, for example of MCP.
    """
    if time.time() - found.changed < KEEP_QUIET_SECONDS:
        return True
    asked_at = normalize_time(state.asked_at)
    since = datetime.fromisoformat(asked_at).timestamp() if asked_at else 0.0
    own = found.processes.own if found.processes else ()
    return cli_processes.has_child_since(own, since)


def _find_cli_sessions(
    harness: str, files: SessionFiles, folder: Path, reported: Mapping[str, str]
) -> Iterator[FoundSession]:
    home = find_home(files)
    transcripts = dict(_list_transcripts(files, home, folder))
    if not transcripts:
        return
    processes = list(_list_processes(files, home, folder, reported))
    changed = {name: transcript_files.read_changed_at(path) for name, path in transcripts.items()}
    matched, doubtful = match_processes(list(transcripts), processes, changed)
    for session, path in transcripts.items():
        yield FoundSession(
            session=session,
            harness=harness,
            transcript=path,
            changed=changed[session],
            processes=matched.get(session),
            doubtful=doubtful,
        )


def _list_transcripts(files: SessionFiles, home: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the sessions of a folder with the paths of their transcripts, oldest first."""
    with suppress(OSError):
        paths = [str(path) for path in home.glob(files.pattern)]
        paths.sort(key=transcript_files.read_changed_at)
        for path in paths[-SESSIONS_SEARCHED:]:
            lines = transcript_files.read_lines(path)
            if session := files.identify(lines, str(folder)):
                yield session, path


def _list_processes(
    files: SessionFiles, home: Path, folder: Path, reported: Mapping[str, str]
) -> Iterator[CliProcess]:
    running = cli_processes.list_cli_processes(files.programs, folder, files.server)
    for pid, row, is_server in running:
        mark = _read_mark(files, home, pid, row.born)
        sessions = {mark.session_id} if mark else set()
        if session := reported.get(launch_processes.identify(pid) or ""):
            sessions.add(session)
        sessions |= _find_open_sessions(files, home, pid)
        yield CliProcess(
            pid=pid,
            born=row.born,
            parent=row.parent,
            started=cli_processes.find_start_time(row.born),
            # The file that the CLI writes is newer than a report of the session's start.
            sessions=(mark.session_id,) if mark else tuple(sorted(sessions)),
            is_server=is_server,
            status=mark.status if mark else "",
        )


def _read_mark(files: SessionFiles, home: Path, pid: int, born: int) -> ProcessMark | None:
    """Return what a process wrote about itself, or None if the file is of an earlier process."""
    if not files.mark:
        return None
    data = durable_files.read_bytes(home / files.mark.format(pid=pid)) or b""
    with suppress(msgspec.MsgspecError):
        mark = msgspec.json.decode(data, type=ProcessMark)
        return mark if mark.proc_start in {"", str(born)} else None
    return None


def _find_open_sessions(files: SessionFiles, home: Path, pid: int) -> set[str]:
    """Return the sessions whose lock files a process has open."""
    if not files.lock:
        return set()
    before, _, after = str(home / files.lock).partition("{session}")
    names = (
        path.removeprefix(before).removesuffix(after)
        for path in cli_processes.list_open_files(pid)
        if path.startswith(before) and path.endswith(after)
    )
    return {name for name in names if "/" not in name and not name.startswith(".")}
