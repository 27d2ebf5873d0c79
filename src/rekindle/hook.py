"""The only code that a tool call waits for: append one record, answer, exit with 0.

    python -I -S hook-HASH.pyc HARNESS EVENT[:SOURCE] [AGENT_FOLDER]

It imports nothing else from Rekindle, and neither re nor json, so that it starts as fast as Python
itself. Event and source come from the command line, which Rekindle wrote, and never from the
payload, which is untrusted. The payload is written to the inbox unparsed, on one line; the fold
parses it.

The agent must never notice a failure, so the exit code is always 0.
"""

import fcntl
import os
import sys
import time

HEAD_BYTES = 192 * 1024
TAIL_BYTES = 64 * 1024
"""Number of bytes stored from the end of a larger payload; the ids are at the two ends."""
TOOL_HEAD_BYTES = 6 * 1024
TOOL_TAIL_BYTES = 2 * 1024
"""Number of bytes stored from the end of a tool call, whose input and output do not matter."""
READ_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes that are read from a payload; the rest is ignored."""
PATIENCE_SECONDS = 0.15
"""Timeout for a slow disk, in seconds; it is short, because the agent waits for the hook."""
PRIMING_SECONDS = 8.0
"""Timeout for a primer, in seconds; after it, the session starts without the primer."""

SPOOL_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes that are spooled for an inbox that cannot be written."""

PRIMED_EVENTS = frozenset(
    ("SessionStart:startup", "SessionStart:clear", "SessionStart:compact", "BeforeAgent")
)
"""Events at which a session receives the state of the work; a CLI has one or the other kind."""

BRAKE_EVENTS = frozenset(("PostToolBatch", "PreToolUse", "BeforeModel"))
"""Events that are used only to stop a session."""


INBOX_DEPTH = 5
"""Number of path components of an inbox below a workspace: .rekindle/agents/NAME/run/inbox."""
RULE_BYTES = 10_000
DIRS_BYTES = 256 * 1024
DIR_FIELDS = 3
"""Number of fields in a line that describes an agent's folder."""
STEP_BYTES = 128 * 1024
TRANSCRIPT_BYTES = 8 * 1024 * 1024
"""Number of bytes at a transcript's end that are searched for the window's usage."""
BRAKING_SECONDS = 3.0
WRITTEN_SECONDS = 1.0
"""Maximum time that a transcript may lag behind a hook's payload, in seconds."""
HOLD_SECONDS = 9.0
"""Maximum time, in seconds, to hold a call until the supervisor ends the session. It is just below
the CLI's own timeout.
"""

_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_NAME_LENGTH = 64
_ATTEMPTS = 100


def main(arguments: list[str]) -> None:
    if "REKINDLE_ONE_SHOT" in os.environ:
        return  # the CLI is answering a question from Rekindle, outside any agent's session
    harness, event = arguments[1], arguments[2]
    payload, size = read_payload(0, *find_payload_limits(event))
    launch = os.environ.get("REKINDLE_LAUNCH", "")
    if event in BRAKE_EVENTS and not launch:
        return
    # Wait longer for an event that may stop a session, so that a busy host cannot let it continue.
    patience = BRAKING_SECONDS if launch and event in BRAKE_EVENTS else PATIENCE_SECONDS
    call_after(patience, exit_now)
    folder = find_folder(harness, event, *arguments[3:4])
    if not folder:
        return
    if event in BRAKE_EVENTS:
        brake_session(event, launch, payload)
        return
    if not is_name(launch):
        launch = "visitor" if is_supervised(folder) else ""
    process = identify(harness) if event.startswith("SessionStart") else ""
    record = compose_record(harness, event, launch, payload, size, process=process)
    # A disk that hangs is treated like one that refuses writes: the record is spooled elsewhere.
    call_after(PATIENCE_SECONDS, raise_timeout)
    is_stored = append_record(f"{folder}/run/inbox", record, depth=INBOX_DEPTH)
    call_after(patience, exit_now)
    if not is_stored:
        spool_record(folder, record)
    brake_session(event, launch, payload)
    call_after(PATIENCE_SECONDS, exit_now)
    if needs_primer(event, launch):
        prime_session(folder, record)


def compose_record(
    harness: str, event: str, launch: str, payload: bytes, size: int, *, process: str = ""
) -> bytes:
    """Return a record: one line, after a newline so that a torn record damages no other one."""
    words = (
        "1",
        "hook",
        harness if is_name(harness) else "-",
        event if is_name(event.replace(":", "-")) else "-",
        launch if is_name(launch) else "-",
        process if is_name(process) else "-",
        str(time.time_ns()),
        f"cut:{size}" if size > len(payload) else "-",
    )
    # JSON strings contain no raw line ends; outside strings, a space is equivalent.
    line = payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"\n" + " ".join(words).encode() + b" " + line + b"\n"


def find_payload_limits(event: str) -> tuple[int, int]:
    """Return how many bytes are stored from a payload's start and from its end."""
    is_tool = event.startswith("PostTool") and event not in BRAKE_EVENTS
    return (TOOL_HEAD_BYTES, TOOL_TAIL_BYTES) if is_tool else (HEAD_BYTES, TAIL_BYTES)


def read_payload(fd: int, most: int = HEAD_BYTES, last: int = TAIL_BYTES) -> tuple[bytes, int]:
    """Return the CLI's payload, with its middle cut out if it is too long, and its full size."""
    head = b""
    tail = b""
    size = 0
    while size < READ_BYTES:
        piece = os.read(fd, 1024 * 1024)
        if not piece:
            break
        size += len(piece)
        room = most - len(head)
        head += piece[:room]
        tail = (tail + piece[room:])[-last:]
    return head + tail, size


def is_supervised(folder: str) -> bool:
    """Return whether a supervisor is alive; if its folder was wiped, one lock remains outside."""
    return is_locked(f"{folder}/run/supervisor") or is_locked(find_outer_lock(folder))


def find_outer_lock(folder: str) -> str:
    """Return the path of the supervisor's lock outside the project; empty if there is none.

    Equivalent to `stores.files.supervisor_locks.find_outer_lock`, without its imports.
    """
    agents, _, name = folder.rpartition("/")
    try:
        project = os.stat(agents.rpartition("/")[0].rpartition("/")[0] or ".")  # noqa: PTH116 - pathlib slows the start
    except OSError:
        return ""
    return (
        f"{find_user_folder()}/locks/{identify_host()}-{project.st_dev:x}-{project.st_ino:x}-{name}"
    )


def find_user_folder() -> str:
    """Return the user's folder, like `system.files.user_folder.find_user_folder`."""
    import pwd  # noqa: PLC0415 - most calls do not need it

    user = os.getuid()
    try:
        home = pwd.getpwuid(user).pw_dir
        status = os.stat(f"{home}/.")  # noqa: PTH116 - pathlib slows the start
        if home.startswith("/") and status.st_uid == user:
            return f"{home.rstrip('/')}/.local/state/rekindle"
    except (KeyError, OSError):
        pass
    return f"/var/tmp/rekindle-{user}"  # noqa: S108 - as in user_folder


def identify_host() -> str:
    """Return the name of the host in locks, like `system.host.identify_host`."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="ascii") as file:  # noqa: PTH123 - pathlib slows the start
                if machine_id := file.read().strip():
                    return machine_id
        except (OSError, UnicodeDecodeError):
            continue
    return os.uname().nodename


def is_locked(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def read_variable(harness: str, name: str) -> str:
    """Return an environment variable of the CLI; its name starts with the harness's first word.

    Variables of a parent CLI describe another process and folder, so they are not used.
    """
    return os.environ.get(f"{harness.partition('-')[0].upper()}_{name}", "")


def identify(harness: str) -> str:
    """Return an identifier of the CLI's process that stays unique when its pid is reused."""
    announced = read_variable(harness, "PID")
    pid = announced if announced.isdecimal() else str(os.getppid())
    try:
        name, facts = read_stat(pid)
        if pid != announced and name.endswith(b"sh"):
            pid = facts[1].decode()  # the parent is a shell that was started only for the hook
            name, facts = read_stat(pid)
        started = facts[19].decode()
        # A pid is meaningless in another namespace, for example in a container.
        namespace = os.readlink("/proc/self/ns/pid")[5:-1]  # noqa: PTH115 - pathlib slows the start
        with open("/proc/sys/kernel/random/boot_id", "rb") as boot:  # noqa: PTH123 - as above
            return f"{pid}.{started}.{boot.read(8).decode()}.{namespace}"
    except (OSError, IndexError):
        return pid  # there is no /proc on macOS


def read_stat(pid: str) -> tuple[bytes, list[bytes]]:
    """Return a process's name and the fields after the name: state, parent, …, start time."""
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - pathlib slows the start
        name, _, rest = stat.read().partition(b"(")[2].rpartition(b")")
    return name, rest.split()


def needs_primer(event: str, launch: str) -> bool:
    """Return whether the session needs the state of the work, or must write a checkpoint first.

    A launch received the state in its prompt and loses it only by compaction; before a compaction,
    a checkpoint is written. A visitor, which is a person's own session, does not need the state. A
    resumed or forked session has received it before.
    """
    if launch == "visitor":
        return False
    if event == "PreCompact":
        return True
    if launch:
        return event == "SessionStart:compact"
    return event in PRIMED_EVENTS


def prime_session(folder: str, record: bytes) -> None:
    """Prime the session with the full program: reading the log takes too long for a tool call."""
    start_program("rekindle.wiring.hook_primer", folder, record)


def start_program(module: str, argument: str, given: bytes) -> None:
    """Run a module of the package, with `given` as its input, for a session that is starting."""
    reader, writer = os.pipe()
    argv = [sys.executable, "-I", "-m", module, argument]
    dup = (os.POSIX_SPAWN_DUP2, reader, 0)
    close = (os.POSIX_SPAWN_CLOSE, writer)
    hush = (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)
    # Set before the start: on a timeout in between, the program would be left running.
    call_after(PRIMING_SECONDS, exit_now)
    child = os.posix_spawn(sys.executable, argv, os.environ, file_actions=[dup, close, hush])

    def give_up(*_: object) -> None:
        os.kill(
            child, 9
        )  # our own child has not been waited for, so its pid cannot have been reused
        os._exit(0)

    call_after(PRIMING_SECONDS, give_up)
    os.close(reader)
    os.write(writer, given)
    os.close(writer)
    os.waitpid(child, 0)


def find_folder(harness: str, event: str, given: str = "") -> str:
    """Return the folder of this session's agent; empty if it is ambiguous.

    It is the agent of the launch or, without a launch, the one that works in the session's folder.
    Hooks that name an agent (`given`) ignore sessions in another agent's folder.
    """
    folder = os.environ.get("REKINDLE_FOLDER") or ""
    if not folder:
        place = os.path.realpath(read_variable(harness, "PROJECT_DIR") or ".")
        agents, _, named = given.rpartition("/") if given else (find_agents(place), "", "")
        dirs = read_dirs(agents, event)
        name = choose_agent(dirs, list_names(agents), place, harness, named)
        folder = f"{agents}/{name}" if name else ""
        # A parent folder may belong to another user; only a project of this user counts.
        if folder and not given and os.lstat(folder).st_uid != os.getuid():
            return ""
    return folder if folder and has_no_links(folder) else ""


def find_agents(place: str) -> str:
    """Return the agents folder of the nearest project above; empty if there is none."""
    while place:
        agents = f"{place}/.rekindle/agents"
        if os.path.isdir(agents):  # noqa: PTH112 - pathlib slows the start
            return agents
        place = place.rpartition("/")[0]
    return ""


def list_names(agents: str) -> list[str]:
    try:
        return [name for name in os.listdir(agents) if is_name(name)]  # noqa: PTH208 - as above
    except OSError:
        return []


def choose_agent(
    dirs: list[list[str]], names: list[str], place: str, harness: str, named: str = ""
) -> str:
    """Return the name of the agent that works in `place`; empty if it is ambiguous."""
    if len(dirs) > 1:
        working_here = choose_agents(dirs, place)
        if named:
            return named if not working_here or named in working_here else ""
        names = [name for name in choose_agents(dirs, place, harness) if name in names]
    if named:
        return named
    return names[0] if len(names) == 1 else ""


def choose_agents(dirs: list[list[str]], place: str, harness: str = "") -> list[str]:
    """Return the agents that work in `place`.

    Equivalent to `policy.setup.agent_dirs.choose_agents`, without its imports.
    """
    inside = place.rstrip("/") + "/"
    around = [entry for entry in dirs if inside.startswith(entry[2].rstrip("/") + "/")]
    depth = max([len(entry[2].rstrip("/")) for entry in around], default=0)
    innermost = [entry for entry in around if len(entry[2].rstrip("/")) == depth]
    same = [entry for entry in innermost if entry[1] == harness]
    return [entry[0] for entry in same or innermost]


def read_dirs(agents: str, event: str) -> list[list[str]]:
    """Return the name, harness and folder of each agent in rekindle.yaml.

    The full program writes this list from the manifest when a session starts, so that an edit of
    the manifest applies to later sessions.
    """
    root = agents.rpartition("/")[0]
    project = root.rpartition("/")[0]
    try:
        status = os.stat(f"{project}/rekindle.yaml")  # noqa: PTH116 - pathlib slows the start
    except OSError:
        return []
    head = f"1 {status.st_mtime_ns} {status.st_size} {os.path.realpath(project)}"
    lines = read_lines(f"{root}/dirs")
    if lines[0] != head and (event in PRIMED_EVENTS or event.startswith("SessionStart")):
        start_program("rekindle.wiring.agent_dir_list", project, b"")
        call_after(PATIENCE_SECONDS, exit_now)
        lines = read_lines(f"{root}/dirs")
    return [words for line in lines[1:] if len(words := line.split(" ", 2)) == DIR_FIELDS]


def read_lines(path: str) -> list[str]:
    try:
        return os.fsdecode(read_file(path, DIRS_BYTES)).split("\n")
    except OSError:
        return [""]


def has_no_links(folder: str) -> bool:
    """Return whether the agent's folders are real folders, because a link could lead anywhere.

    A missing folder does not count as a link; a later write to it fails.
    """
    root = folder.rpartition("/")[0]
    for path in (root.rpartition("/")[0], root, folder, f"{folder}/run", f"{folder}/run/inbox"):
        try:
            if os.lstat(path).st_mode & 0o170000 != 0o040000:  # noqa: PLR2004 - a folder
                return False
        except FileNotFoundError:
            if path == folder:
                return False
    return True


def open_folder(path: str, depth: int) -> int:
    """Open a folder without following links in the last `depth` components of its path.

    The components are opened one at a time, because an agent may replace one with a link after a
    check.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    above, *names = path.rsplit("/", depth)
    fd = os.open(above or "/", flags)
    for name in names:
        try:
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def append_record(
    place: str, record: bytes, prefix: str = "", limit: int = 0, *, depth: int = 1
) -> bool:
    """Append under a shared lock to a segment that still exists; return False on failure.

    Segment names are never reused, because the log records how far each segment is folded.
    """
    try:
        at = open_folder(place, depth)
    except OSError:
        return False
    try:
        return append_to_segment(at, record, prefix, limit)
    finally:
        os.close(at)


def append_to_segment(at: int, record: bytes, prefix: str, limit: int) -> bool:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for _ in range(_ATTEMPTS):
        try:
            names = [
                name for name in os.listdir(at) if name.startswith(prefix) and name.endswith(".seg")
            ]
            make = 0 if names else os.O_CREAT | os.O_EXCL
            name = max(names) if names else f"{prefix}{time.time_ns():020d}-{os.getpid():08x}.seg"
            fd = os.open(name, flags | make, 0o600, dir_fd=at)
        except FileExistsError:
            continue
        except FileNotFoundError:
            if not os.fstat(at).st_nlink:
                return False
            continue
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            status = os.fstat(fd)
            # The fold may have removed the segment between open and lock; a write would be lost.
            if status.st_nlink:
                is_full = limit and status.st_size > limit
                return not is_full and os.write(fd, record) == len(record)
        except OSError:
            return False
        finally:
            os.close(fd)
    return False


def spool_record(folder: str, record: bytes) -> None:
    """Store a record elsewhere while the inbox cannot be written; the fold reads it there too."""
    for spool in spool_folders():
        try:  # noqa: SIM105 - contextlib slows the start
            os.mkdir(spool, 0o700)  # noqa: PTH102 - pathlib slows the start
        except OSError:
            pass  # the folder exists or cannot be created; this is checked next
        if is_ours_alone(spool) and append_record(spool, record, spool_prefix(folder), SPOOL_BYTES):
            return


def spool_folders() -> tuple[str, ...]:
    """Return the folders for records while the inbox's disk is full, read-only or missing.

    The user's in-memory folder comes first, if the host has one, because the disk of the home may
    be full too. /tmp is not used, because the sandbox of a CLI lets an agent write there.
    """
    return (f"/run/user/{os.getuid()}/rekindle", f"{find_user_folder()}/spool")


def is_ours_alone(path: str) -> bool:
    """Return whether a folder belongs to the user, is not a link, and is closed to other users."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mode & 0o170777 == 0o040700  # noqa: PLR2004 - a folder


def spool_prefix(folder: str) -> str:
    """Return a prefix for file names, derived from the agent's folder."""
    # Agent names contain no plus sign, so the prefix of `trades` does not match that of
    # `trades-eu`.
    return "".join(c if c in _NAME else "%" for c in folder)[-150:] + "+"


def brake_session(event: str, launch: str, payload: bytes) -> None:
    """Between two turns, stop a session whose window is so full that a fresh one should take over.

    The supervisor's rule defines which session to stop, where and how. The hook measures the window
    itself, because the CLI does nothing else while it waits for the hook. A sub-agent's boundary
    does not count, because the main thread waits for the sub-agent, with a call in progress. The
    rule is in a folder where the agent cannot write, because the CLI follows the rule's answer.
    """
    rules = os.environ.get("REKINDLE_RULES", "")
    if not rules or not is_name(launch):
        return
    rule: dict[bytes, list[bytes]] = {}
    try:
        for line in read_file(f"{rules}/brake-{launch}", RULE_BYTES).split(b"\n"):
            word, _, value = line.partition(b" ")
            rule.setdefault(word, []).append(value)
    except OSError:
        return
    if rule.get(b"event") != [event.encode()]:
        return
    call_after(BRAKING_SECONDS, exit_now)
    fullness = measure_window(rule, payload)
    if fullness is None:
        return
    mark = f"{rules}/braked-{launch}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(mark, flags, 0o600)
    os.write(fd, b"%d %d\n" % fullness + payload)
    os.close(fd)
    if answer := read_first(rule, b"answer"):
        os.write(1, answer)
    else:
        hold_call(mark, f"{rules}/taken-{launch}")


def hold_call(mark: str, taken: str) -> None:
    """Hold a call back until the supervisor has ended the session.

    A late supervisor must not end the session while the call is running. On timeout, the hook
    therefore removes the mark, unless the supervisor has just taken it.
    """

    def give_up(*_: object) -> None:
        try:
            os.unlink(mark)  # noqa: PTH108 - pathlib slows the start
        except OSError:
            call_after(HOLD_SECONDS, exit_now)  # the supervisor is about to end the session
        else:
            os._exit(0)

    call_after(HOLD_SECONDS, give_up)
    while os.access(mark, os.F_OK) or os.access(taken, os.F_OK):
        time.sleep(0.02)


def measure_window(rule: dict[bytes, list[bytes]], payload: bytes) -> tuple[int, int] | None:
    """Return the used and total size of the window if it is full enough to stop, else None."""
    path, own, limit = (
        find_text(payload, b"transcript_path"),
        read_first(rule, b"own"),
        read_first(rule, b"limit"),
    )
    below = read_first(rule, b"below")
    if (own and path != own) or (below and b'"' + below + b'":' in payload[:TOOL_TAIL_BYTES]):
        return None
    if call := read_first(rule, b"call"):
        wait_for_calls(path, payload, call)
    if is_at_work(rule, path):
        return None
    settled, window = read_first(rule, b"settled"), read_first(rule, b"window")
    if limit == b"0" and not settled:
        return 0, 0
    start = read_first(rule, b"after")
    line = find_usage_line(path, rule.get(b"sign", []), start, read_first(rule, b"void"))
    used, size = read_fullness(line, start, rule.get(b"count", []), window, settled)
    limit = limit or find_limit(rule, line)
    most = int(limit.rstrip(b"%") or b"0")
    is_full = used * 100 >= most * size > 0 if window else used >= most
    # None: the usage is unknown, or a call of a sub-agent is in progress whose turn looks like
    # ours.
    return (used, size) if used and limit and is_full else None


def read_first(rule: dict[bytes, list[bytes]], word: bytes) -> bytes:
    return rule.get(word, [b""])[0]


def find_limit(rule: dict[bytes, list[bytes]], line: bytes) -> bytes:
    """Return the limit for the model that a line names; empty if its window size is unknown."""
    for key in rule.get(b"model", []):
        if model := find_text(line, key):
            for entry in rule.get(b"limits", []):
                tokens, _, name = entry.partition(b" ")
                if name == model:
                    return tokens
            return b""
    return b""


def is_at_work(rule: dict[bytes, list[bytes]], path: bytes) -> bool:
    """Return whether a stop would interrupt a tool call of the session or a sub-agent."""
    if calls := rule.get(b"calls"):
        begins, over = calls
        tail = read_tail(path)
        position = tail.find(begins)
        while position >= 0:
            name = tail[position + len(begins) :].partition(b'"')[0]
            if over + name + b'"' not in tail:
                return True
            position = tail.find(begins, position + 1)
    asides = read_first(rule, b"asides")
    folder = path.rpartition(b".")[0] + b"/" + asides
    if not asides or not os.path.isdir(folder):  # noqa: PTH112 - pathlib slows the start
        return False
    for parent, _, names in os.walk(folder):
        for name in names:
            last = read_tail(parent + b"/" + name).rstrip().rpartition(b"\n")[2]
            # The last line of a finished sub-agent is its final message, without a tool call.
            is_over = b'"type":"assistant"' in last and b'"type":"tool_use"' not in last
            if name.endswith(b".jsonl") and not is_over:
                return True
    return False


def read_tail(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, STEP_BYTES, max(0, size - STEP_BYTES))
    finally:
        os.close(fd)


def find_usage_line(path: bytes, signs: list[bytes], start: bytes, void: bytes) -> bytes:
    """Return the last line of a transcript that reports usage; empty if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        end_of_file = os.fstat(fd).st_size
        tail = b""
        while len(tail) < min(end_of_file, TRANSCRIPT_BYTES):
            more = min(end_of_file - len(tail), max(len(tail), STEP_BYTES))
            tail = os.pread(fd, more, end_of_file - len(tail) - more) + tail
            for line in reversed(tail.split(b"\n")[1 if len(tail) < end_of_file else 0 :]):
                if void and line.startswith(void):
                    return b""
                if start in line and all(sign in line for sign in signs):
                    return line
        return b""
    finally:
        os.close(fd)


def read_fullness(
    line: bytes, start: bytes, counts: list[bytes], window: bytes, settled: bytes
) -> tuple[int, int]:
    """Return the used and total size of the window that a line reports; 0 for a missing number."""
    # A call's input comes after the text `settled`, and may look like counts.
    position = line.rfind(start, 0, line.find(settled) if settled else len(line))
    if position < 0 or (settled and settled not in line):
        return 0, 0
    used = sum(find_number(line, key, position) for key in counts)
    return used, find_number(line, window, 0) if window else 0


def find_number(line: bytes, key: bytes, place: int) -> int:
    """Return the number after a JSON key, searching from an offset; 0 if there is none."""
    sign = b'"' + key + b'":'
    position = line.find(sign, place)
    if position < 0:
        return 0
    digits = line[position + len(sign) : position + len(sign) + 20].lstrip()
    length = 0
    while digits[length : length + 1].isdigit():
        length += 1
    return int(digits[:length] or b"0")


def find_text(text: bytes, key: bytes) -> bytes:
    """Return the text after a JSON key; empty if there is none, or if it has escapes."""
    sign = b'"' + key + b'"'
    position = text.find(sign)
    value = text[position + len(sign) :].lstrip(b": ") if position >= 0 else b""
    content = value[1:].partition(b'"')[0] if value.startswith(b'"') else b""
    return b"" if b"\\" in content else content


def wait_for_calls(path: bytes, payload: bytes, key: bytes) -> None:
    """Wait until a transcript has the finished calls, which the CLI writes a moment later."""
    sign = b'"' + key + b'":"'
    position = payload.rfind(sign)
    call = payload[position + len(sign) :].partition(b'"')[0] if position >= 0 else b""
    deadline = time.monotonic() + WRITTEN_SECONDS
    while call and time.monotonic() < deadline:
        # The results after the id may be megabytes long, for example images.
        if find_usage_line(path, [b'"' + call + b'"'], b'"', b""):
            return
        time.sleep(0.01)


def read_file(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


def is_name(text: str) -> bool:
    return 0 < len(text) <= _NAME_LENGTH and text[0] not in "._-" and _NAME.issuperset(text)


def call_after(seconds: float, then: object) -> None:
    """Call `then` after a timeout; Python's own signal handler would wait for the disk."""
    import _signal  # type: ignore[import-not-found]  # noqa: PLC0415 - `signal` imports enum, which slows the start

    _signal.signal(_signal.SIGALRM, then)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def raise_timeout(*_: object) -> None:
    raise TimeoutError  # TimeoutError is an OSError, like other disk failures


def exit_now(*_: object) -> None:
    os._exit(0)


if __name__ == "__main__":
    try:
        main(sys.argv)
    finally:
        os._exit(0)  # the agent must not notice any failure
