"""Match a CLI's running processes to its sessions.

A process may be asked to exit only if it is certain that it runs the session. Most processes show
their session: in a file that the CLI writes about the process, in a hook's report, or by a file
that is open. Any other process belongs to a session only if no other session and no other process
is possible.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

Identity = tuple[int, int]
"""Pid and start time of a process."""


class CliProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A running process of an agent CLI."""

    pid: int
    born: int
    parent: int = 0
    started: float = 0.0
    """Start time in seconds since 1970."""
    sessions: tuple[str, ...] = ()
    """Sessions that the process certainly runs."""
    is_server: bool = False
    """Whether it runs sessions for other processes of the CLI."""
    status: str = ""
    """What the process is doing, according to the CLI; empty if the CLI does not say so."""

    @property
    def identity(self) -> Identity:
        return self.pid, self.born


class SessionProcesses(msgspec.Struct, frozen=True):
    """The processes of one session."""

    own: tuple[Identity, ...] = ()
    server: Identity | None = None
    """The background server that runs the session."""
    others: tuple[str, ...] = ()
    """Other sessions that the server runs."""
    status: str = ""


def match_processes(
    sessions: Collection[str], processes: Sequence[CliProcess], changed: Mapping[str, float]
) -> tuple[dict[str, SessionProcesses], tuple[Identity, ...]]:
    """Return the processes of each running session, and the processes that cannot be assigned.

    `sessions` are the sessions in the folder, and `processes` the CLI's processes there and its
    servers. `changed` maps a session to the time at which its transcript last changed, in seconds
    since 1970.
    """
    matched: dict[str, SessionProcesses] = {}
    for process in processes:
        for session in set(process.sessions) & set(sessions):
            matched[session] = _add_process(matched.get(session), process, session)
    unknown = [process for process in processes if not (process.sessions or process.is_server)]
    groups = _group_by_parent(unknown)
    served = [session for session, found in matched.items() if found.server and not found.own]
    if not groups:
        return matched, ()
    oldest = min(process.started for process in unknown)
    possible = served or [
        session
        for session in sessions
        if session not in matched and changed.get(session, 0) >= oldest
    ]
    if len(groups) > 1 or len(possible) != 1:
        return matched, tuple(process.identity for process in unknown)
    (session,) = possible
    for process in groups[0]:
        matched[session] = _add_process(matched.get(session), process, session)
    return matched, ()


def _add_process(
    found: SessionProcesses | None, process: CliProcess, session: str
) -> SessionProcesses:
    found = found or SessionProcesses()
    if not process.is_server:
        own = (*found.own, process.identity)
        return msgspec.structs.replace(found, own=own, status=process.status or found.status)
    others = tuple(other for other in process.sessions if other != session)
    return msgspec.structs.replace(found, server=process.identity, others=others)


def _group_by_parent(processes: Sequence[CliProcess]) -> list[list[CliProcess]]:
    """Group processes with their children, because some CLIs start themselves again."""
    pids = {process.pid for process in processes}
    roots = [process for process in processes if process.parent not in pids]
    groups = []
    for root in roots:
        group = [root]
        for process in processes:
            if process.parent in {member.pid for member in group}:
                group.append(process)
        groups.append(group)
    return groups
