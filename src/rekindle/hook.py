"""The only code that a tool call waits for: append one record, answer, end with 0.

    python -I -S hook-HASH.pyc HARNESS EVENT[:SOURCE] [AGENT_FOLDER]

It imports nothing of ours, and neither re nor json, so that it starts in the time that Python
itself needs. Event and source come from the command line, which we wrote, never from the payload,
which anybody may have shaped. The payload goes into the inbox as it came, on one line; whoever
folds it reads it.

Whatever happens, the agent must not notice: every failure ends in exit code 0.
"""

import fcntl
import os
import sys
import time

HEAD_BYTES = 192 * 1024
TAIL_BYTES = 64 * 1024
"""What is kept of a larger payload: its two ends, where the ids stand."""
TOOL_HEAD_BYTES = 6 * 1024
TOOL_TAIL_BYTES = 2 * 1024
"""Of a tool call we need to know only that it was: what it was given and gave stays outside."""
READ_BYTES = 32 * 1024 * 1024
"""What is read at most; beyond it the writer is left to itself."""
PATIENCE_SECONDS = 0.15
"""A disk that does not answer for so long is given up: the agent waits for us."""
PRIMING_SECONDS = 8.0
"""A primer that is not there by then is given up: the session begins without it."""
WEIGHED_SECONDS = 1.5
"""How long a session that goes on waits for its supervisor's word whether it may."""

SPOOL_BYTES = 4 * 1024 * 1024
"""The most that is kept for an inbox that cannot be written."""

TOLD_AT = frozenset(
    ("SessionStart:startup", "SessionStart:clear", "SessionStart:compact", "BeforeAgent")
)
"""Where a session is told where the work stands; a CLI has one or the other."""

GATES = frozenset(("PostToolBatch", "PreToolUse", "BeforeModel"))
"""Where a session can be stopped, and nothing else is of interest."""


INBOX_DEPTH = 5
"""The names of an inbox's path that are in a workspace: .rekindle/agents/NAME/run/inbox."""
RULE_BYTES = 10_000
DIRS_BYTES = 256 * 1024
WORDS = 3
"""The words of a line that has the folder of an agent."""
STEP_BYTES = 128 * 1024
TRANSCRIPT_BYTES = 8 * 1024 * 1024
"""How much of a transcript's end is looked through for how full the window is."""
BRAKING_SECONDS = 3.0
WRITTEN_SECONDS = 1.0
"""How long a transcript may be behind what a hook is told."""
HOLD_SECONDS = 9.0
"""How long a call is held for who is to end the session; the CLI would give us up a moment later.
"""

_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_NAME_LENGTH = 64
_ATTEMPTS = 100


def main(arguments: list[str]) -> None:
    if "REKINDLE_ASKED" in os.environ:
        return  # the CLI answers a question of ours, and works in nobody's session
    harness, event = arguments[1], arguments[2]
    payload, size = read_payload(0, *limits(event))
    launch = os.environ.get("REKINDLE_LAUNCH", "")
    if event in GATES and not launch:
        return
    # Where a session may be stopped, a busy host must not make it go on instead.
    patience = BRAKING_SECONDS if launch and event in GATES else PATIENCE_SECONDS
    after(patience, end)
    folder = find_folder(harness, event, *arguments[3:4])
    if not folder:
        return
    if event in GATES:
        brake(event, launch, payload)
        return
    if not is_name(launch):
        launch = "visitor" if is_supervised(folder) else ""
    process = identify(harness) if event.startswith("SessionStart") else ""
    record = compose(harness, event, launch, payload, size, process=process)
    # A disk that hangs counts as one that refuses: the record goes elsewhere.
    after(PATIENCE_SECONDS, refuse)
    is_kept = append(f"{folder}/run/inbox", record, depth=INBOX_DEPTH)
    after(patience, end)
    if not is_kept:
        spool(folder, record)
    brake(event, launch, payload)
    after(PATIENCE_SECONDS, end)
    be_weighed(folder, event, launch)
    if must_prime(event, launch):
        prime(folder, record)


def compose(
    harness: str, event: str, launch: str, payload: bytes, size: int, *, process: str = ""
) -> bytes:
    """One record: a line that opens with a newline, so that a torn one spoils only itself."""
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
    # JSON has no raw line ends inside its strings; outside of them a space says the same.
    line = payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"\n" + " ".join(words).encode() + b" " + line + b"\n"


def limits(event: str) -> tuple[int, int]:
    """How much of a payload's beginning and end is kept."""
    is_tool = event.startswith("PostTool") and event not in GATES
    return (TOOL_HEAD_BYTES, TOOL_TAIL_BYTES) if is_tool else (HEAD_BYTES, TAIL_BYTES)


def read_payload(fd: int, most: int = HEAD_BYTES, last: int = TAIL_BYTES) -> tuple[bytes, int]:
    """What the CLI says, cut in its middle where it is too long, and how long it was."""
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
    """Whether a supervisor lives: it holds two locks, and a wiped folder has lost one of them."""
    return is_locked(f"{folder}/run/supervisor") or is_locked(outer_lock(folder))


def outer_lock(folder: str) -> str:
    """Return the path of the supervisor's lock outside the project; empty: there is none.

    The same as `stores.files.supervision.outer_lock`, without its imports.
    """
    agents, _, name = folder.rpartition("/")
    try:
        project = os.stat(agents.rpartition("/")[0].rpartition("/")[0] or ".")  # noqa: PTH116 - pathlib costs a start
    except OSError:
        return ""
    return f"{user_folder()}/locks/{identify_host()}-{project.st_dev:x}-{project.st_ino:x}-{name}"


def user_folder() -> str:
    """Return the user's own folder; the same as `system.user_folder.path`, without its imports."""
    import pwd  # noqa: PLC0415 - most calls do not need it

    user = os.getuid()
    try:
        home = pwd.getpwuid(user).pw_dir
        found = os.stat(f"{home}/.")  # noqa: PTH116 - pathlib costs a start
        if home.startswith("/") and found.st_uid == user:
            return f"{home.rstrip('/')}/.local/state/rekindle"
    except (KeyError, OSError):
        pass
    return f"/var/tmp/rekindle-{user}"  # noqa: S108 - as user_folder.path() has it


def identify_host() -> str:
    """Return the host's name in locks; the same as `system.host.identify`, without its imports."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="ascii") as file:  # noqa: PTH123 - pathlib costs a start
                if found := file.read().strip():
                    return found
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
    """Return a variable of the CLI; it begins with the first word of its harness.

    Variables of a CLI that this one was started from name another process and another place.
    """
    return os.environ.get(f"{harness.partition('-')[0].upper()}_{name}", "")


def identify(harness: str) -> str:
    """Return the CLI's process, told from any other that will ever have its number."""
    said = read_variable(harness, "PID")
    pid = said if said.isdecimal() else str(os.getppid())
    try:
        name, facts = stat_of(pid)
        if pid != said and name.endswith(b"sh"):
            pid = facts[1].decode()  # the shell was started for us alone
            name, facts = stat_of(pid)
        started = facts[19].decode()
        # A number says nothing to who is in another namespace, as in a container.
        room = os.readlink("/proc/self/ns/pid")[5:-1]  # noqa: PTH115 - pathlib costs a start
        with open("/proc/sys/kernel/random/boot_id", "rb") as boot:  # noqa: PTH123 - as above
            return f"{pid}.{started}.{boot.read(8).decode()}.{room}"
    except (OSError, IndexError):
        return pid  # no /proc, as on macOS


def stat_of(pid: str) -> tuple[bytes, list[bytes]]:
    """A process's name, and the facts behind it: its state, its parent, …, when it began."""
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - pathlib costs a start
        name, _, rest = stat.read().partition(b"(")[2].rpartition(b")")
    return name, rest.split()


def must_prime(event: str, launch: str) -> bool:
    """Whether the session must be told where the work stands, or that is to be written down.

    A launch was told in its prompt, and only forgets when it is compacted; before that, what it
    knows is kept in a checkpoint. A visitor is a person's own; who resumes or forks has been told
    before.
    """
    if launch == "visitor":
        return False
    if event == "PreCompact":
        return True
    if launch:
        return event == "SessionStart:compact"
    return event in TOLD_AT


def prime(folder: str, record: bytes) -> None:
    """Have the whole program say it: it reads the log, which costs more than a tool call may."""
    start_program("rekindle.wiring.prime", folder, record)


def start_program(module: str, argument: str, given: bytes) -> None:
    """Run a program of the package, with `given` as its input, for a session that begins."""
    reader, writer = os.pipe()
    argv = [sys.executable, "-I", "-m", module, argument]
    dup = (os.POSIX_SPAWN_DUP2, reader, 0)
    close = (os.POSIX_SPAWN_CLOSE, writer)
    hush = (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)
    # Set before it is started: given up in between, it would go on alone.
    after(PRIMING_SECONDS, end)
    child = os.posix_spawn(sys.executable, argv, os.environ, file_actions=[dup, close, hush])

    def give_up(*_: object) -> None:
        os.kill(child, 9)  # our own, not waited for yet: the number is still its
        os._exit(0)

    after(PRIMING_SECONDS, give_up)
    os.close(reader)
    os.write(writer, given)
    os.close(writer)
    os.waitpid(child, 0)


def find_folder(harness: str, event: str, given: str = "") -> str:
    """Return the folder of the agent whose session this is; empty if that is not clear.

    It is the agent of the launch, else the one that works in the session's folder. Hooks that name
    an agent (`given`) count for no session in the folder of another one.
    """
    folder = os.environ.get("REKINDLE_FOLDER") or ""
    if not folder:
        place = os.path.realpath(read_variable(harness, "PROJECT_DIR") or ".")
        agents, _, named = given.rpartition("/") if given else (find_agents(place), "", "")
        dirs = read_dirs(agents, event)
        name = choose_agent(dirs, list_names(agents), place, harness, named)
        folder = f"{agents}/{name}" if name else ""
        # A folder above may be another user's: only our own user's project counts.
        if folder and not given and os.lstat(folder).st_uid != os.getuid():
            return ""
    return folder if folder and has_no_links(folder) else ""


def find_agents(place: str) -> str:
    """Return the folder of the agents in the nearest project above; empty: there is none."""
    while place:
        agents = f"{place}/.rekindle/agents"
        if os.path.isdir(agents):  # noqa: PTH112 - pathlib costs a start
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
    """Return the name of the agent that works in `place`; empty if that is not clear."""
    if len(dirs) > 1:
        here = choose_agents(dirs, place)
        if named:
            return named if not here or named in here else ""
        names = [name for name in choose_agents(dirs, place, harness) if name in names]
    if named:
        return named
    return names[0] if len(names) == 1 else ""


def choose_agents(dirs: list[list[str]], place: str, harness: str = "") -> list[str]:
    """Return the agents that work in `place`.

    The same as `policy.agent_dirs.choose_agents`, without its imports.
    """
    inside = place.rstrip("/") + "/"
    around = [one for one in dirs if inside.startswith(one[2].rstrip("/") + "/")]
    depth = max([len(one[2].rstrip("/")) for one in around], default=0)
    innermost = [one for one in around if len(one[2].rstrip("/")) == depth]
    same = [one for one in innermost if one[1] == harness]
    return [one[0] for one in same or innermost]


def read_dirs(agents: str, event: str) -> list[list[str]]:
    """Return name, harness and folder of each agent, as rekindle.yaml has them.

    The list beside the agents is made from the manifest by the whole program, which is started only
    when a session begins: an edit counts for the sessions that begin after it.
    """
    root = agents.rpartition("/")[0]
    project = root.rpartition("/")[0]
    try:
        found = os.stat(f"{project}/rekindle.yaml")  # noqa: PTH116 - pathlib costs a start
    except OSError:
        return []
    head = f"1 {found.st_mtime_ns} {found.st_size} {os.path.realpath(project)}"
    lines = read_lines(f"{root}/dirs")
    if lines[0] != head and (event in TOLD_AT or event.startswith("SessionStart")):
        start_program("rekindle.wiring.agent_dirs", project, b"")
        after(PATIENCE_SECONDS, end)
        lines = read_lines(f"{root}/dirs")
    return [words for line in lines[1:] if len(words := line.split(" ", 2)) == WORDS]


def read_lines(path: str) -> list[str]:
    try:
        return os.fsdecode(read_file(path, DIRS_BYTES)).split("\n")
    except OSError:
        return [""]


def has_no_links(folder: str) -> bool:
    """Whether the agent's folders are folders: a link among them could lead anywhere.

    What is missing is no link; whoever writes there finds out.
    """
    root = folder.rpartition("/")[0]
    for place in (root.rpartition("/")[0], root, folder, f"{folder}/run", f"{folder}/run/inbox"):
        try:
            if os.lstat(place).st_mode & 0o170000 != 0o040000:  # noqa: PLR2004 - a folder
                return False
        except FileNotFoundError:
            if place == folder:
                return False
    return True


def open_folder(path: str, depth: int) -> int:
    """Open a folder without following a link in its last `depth` names.

    One after the other: an agent may put a link there after we have looked.
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


def append(place: str, record: bytes, prefix: str = "", limit: int = 0, *, depth: int = 1) -> bool:
    """Append under a shared lock to a segment that is still there; False where that failed.

    Segment names are never used twice: the log remembers by them how far they are folded.
    """
    try:
        at = open_folder(place, depth)
    except OSError:
        return False
    try:
        return append_at(at, record, prefix, limit)
    finally:
        os.close(at)


def append_at(at: int, record: bytes, prefix: str, limit: int) -> bool:
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
            found = os.fstat(fd)
            # Between open and lock the fold may have removed it: what is written then is lost.
            if found.st_nlink:
                is_full = limit and found.st_size > limit
                return not is_full and os.write(fd, record) == len(record)
        except OSError:
            return False
        finally:
            os.close(fd)
    return False


def spool(folder: str, record: bytes) -> None:
    """Keep a record elsewhere while the inbox cannot be written; the fold looks there too."""
    for place in spool_folders():
        try:  # noqa: SIM105 - contextlib costs a start
            os.mkdir(place, 0o700)  # noqa: PTH102 - pathlib costs a start
        except OSError:
            pass  # it exists, or cannot be made: verified next
        if is_ours_alone(place) and append(place, record, spool_prefix(folder), SPOOL_BYTES):
            return


def spool_folders() -> tuple[str, ...]:
    """Return where records go while the inbox's disk is full, read-only or gone.

    First the user's folder in memory, if the host has one: the disk of the home may be full too.
    Never /tmp, where the sandbox of a CLI lets an agent write.
    """
    return (f"/run/user/{os.getuid()}/rekindle", f"{user_folder()}/spool")


def is_ours_alone(path: str) -> bool:
    """Return whether a folder belongs to the user, is not a link, and is closed to others."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_uid == os.getuid() and found.st_mode & 0o170777 == 0o040700  # noqa: PLR2004 - a folder


def spool_prefix(folder: str) -> str:
    """The agent's folder as the beginning of a file's name."""
    # No name holds a plus: the spool of `trades` does not begin like that of `trades-eu`.
    return "".join(c if c in _NAME else "%" for c in folder)[-150:] + "+"


def brake(event: str, launch: str, payload: bytes) -> None:
    """At a boundary, stop a session whose window is so full that a fresh one is to go on.

    What is to be stopped, where and how its supervisor has written down; whether the window is so
    full by now is looked up here: nothing else can happen meanwhile. A sub-agent's boundary is
    none: the main thread waits for it, with a call under way. The rule is in a folder where the
    agent cannot write: the CLI does what its answer says.
    """
    place = os.environ.get("REKINDLE_RULES", "")
    if not place or not is_name(launch):
        return
    rule: dict[bytes, list[bytes]] = {}
    try:
        for line in read_file(f"{place}/brake-{launch}", RULE_BYTES).split(b"\n"):
            word, _, value = line.partition(b" ")
            rule.setdefault(word, []).append(value)
    except OSError:
        return
    if rule.get(b"event") != [event.encode()]:
        return
    after(BRAKING_SECONDS, end)
    found = measure(rule, payload)
    if found is None:
        return
    mark = f"{place}/braked-{launch}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(mark, flags, 0o600)
    os.write(fd, b"%d %d\n" % found + payload)
    os.close(fd)
    if answer := one(rule, b"answer"):
        os.write(1, answer)
    else:
        hold(mark, f"{place}/taken-{launch}")


def hold(mark: str, taken: str) -> None:
    """Keep a call from beginning, until who is to end the session has done so.

    Whoever comes too late must not end it while the call runs: given up, the mark goes, unless it
    was taken just then.
    """

    def give_up(*_: object) -> None:
        try:
            os.unlink(mark)  # noqa: PTH108 - pathlib costs a start
        except OSError:
            after(HOLD_SECONDS, end)  # it is about to be ended
        else:
            os._exit(0)

    after(HOLD_SECONDS, give_up)
    while os.access(mark, os.F_OK) or os.access(taken, os.F_OK):
        time.sleep(0.02)


def measure(rule: dict[bytes, list[bytes]], payload: bytes) -> tuple[int, int] | None:
    """What is used of a window, and how large it is, where that is enough to be stopped for."""
    path, own, limit = said_in(payload, b"transcript_path"), one(rule, b"own"), one(rule, b"limit")
    below = one(rule, b"below")
    if (own and path != own) or (below and b'"' + below + b'":' in payload[:TOOL_TAIL_BYTES]):
        return None
    if call := one(rule, b"call"):
        wait_for(path, payload, call)
    if is_at_work(rule, path):
        return None
    settled, window = one(rule, b"settled"), one(rule, b"window")
    if limit == b"0" and not settled:
        return 0, 0
    start = one(rule, b"after")
    line = telling(path, rule.get(b"sign", []), start, one(rule, b"void"))
    used, size = fullness(line, start, rule.get(b"count", []), window, settled)
    limit = limit or limit_of(rule, line)
    most = int(limit.rstrip(b"%") or b"0")
    is_full = used * 100 >= most * size > 0 if window else used >= most
    # Nothing: nobody knows, or a call is under way, of a sub-agent whose turn looks like ours.
    return (used, size) if used and limit and is_full else None


def one(rule: dict[bytes, list[bytes]], word: bytes) -> bytes:
    return rule.get(word, [b""])[0]


def limit_of(rule: dict[bytes, list[bytes]], line: bytes) -> bytes:
    """The limit of the model that a line names; empty: nobody knows how large its window is."""
    for key in rule.get(b"model", []):
        if model := said_in(line, key):
            for known in rule.get(b"limits", []):
                tokens, _, name = known.partition(b" ")
                if name == model:
                    return tokens
            return b""
    return b""


def is_at_work(rule: dict[bytes, list[bytes]], path: bytes) -> bool:
    """Whether something would be cut: a call of the session's own, or a sub-agent beside it."""
    if calls := rule.get(b"calls"):
        begins, over = calls
        tail = tail_of(path)
        place = tail.find(begins)
        while place >= 0:
            name = tail[place + len(begins) :].partition(b'"')[0]
            if over + name + b'"' not in tail:
                return True
            place = tail.find(begins, place + 1)
    asides = one(rule, b"asides")
    folder = path.rpartition(b".")[0] + b"/" + asides
    if not asides or not os.path.isdir(folder):  # noqa: PTH112 - pathlib costs a start
        return False
    for place_of, _, names in os.walk(folder):
        for name in names:
            last = tail_of(place_of + b"/" + name).rstrip().rpartition(b"\n")[2]
            # Its last line is what it said in the end, and calls nothing.
            is_over = b'"type":"assistant"' in last and b'"type":"tool_use"' not in last
            if name.endswith(b".jsonl") and not is_over:
                return True
    return False


def tail_of(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, STEP_BYTES, max(0, size - STEP_BYTES))
    finally:
        os.close(fd)


def telling(path: bytes, signs: list[bytes], start: bytes, void: bytes) -> bytes:
    """The last line of a transcript that tells what is used; empty where none does."""
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


def fullness(
    line: bytes, start: bytes, counts: list[bytes], window: bytes, settled: bytes
) -> tuple[int, int]:
    """What is used of a window by a line that tells, and how large it is; 0: it does not say."""
    # What a call was given stands behind the sign that it is over, and may look like counts.
    place = line.rfind(start, 0, line.find(settled) if settled else len(line))
    if place < 0 or (settled and settled not in line):
        return 0, 0
    used = sum(number_in(line, key, place) for key in counts)
    return used, number_in(line, window, 0) if window else 0


def number_in(line: bytes, key: bytes, place: int) -> int:
    """The number behind a key of JSON, from a place on; 0 where there is none."""
    sign = b'"' + key + b'":'
    found = line.find(sign, place)
    if found < 0:
        return 0
    digits = line[found + len(sign) : found + len(sign) + 20].lstrip()
    length = 0
    while digits[length : length + 1].isdigit():
        length += 1
    return int(digits[:length] or b"0")


def said_in(text: bytes, key: bytes) -> bytes:
    """The text behind a key of JSON; empty where there is none that stands there plainly."""
    sign = b'"' + key + b'"'
    found = text.find(sign)
    value = text[found + len(sign) :].lstrip(b": ") if found >= 0 else b""
    said = value[1:].partition(b'"')[0] if value.startswith(b'"') else b""
    return b"" if b"\\" in said else said


def wait_for(path: bytes, payload: bytes, key: bytes) -> None:
    """Until a transcript has the calls that are over: the CLI writes it a moment later."""
    sign = b'"' + key + b'":"'
    found = payload.rfind(sign)
    call = payload[found + len(sign) :].partition(b'"')[0] if found >= 0 else b""
    deadline = time.monotonic() + WRITTEN_SECONDS
    while call and time.monotonic() < deadline:
        # The results behind it may be megabytes, as pictures are.
        if telling(path, [b'"' + call + b'"'], b'"', b""):
            return
        time.sleep(0.01)


def read_file(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


def be_weighed(folder: str, event: str, launch: str) -> None:
    """Before a session that goes on asks its model anything: wait for who may end it instead.

    What this record says may make a fresh session the cheaper one. The supervisor takes its mark
    away when it has looked, or ends us with the CLI.
    """
    if event != "SessionStart:resume" or not is_name(launch):
        return
    mark = f"{folder}/run/weigh-{launch}"
    if os.access(mark, os.F_OK):
        after(WEIGHED_SECONDS, end)
    while os.access(mark, os.F_OK):
        time.sleep(0.02)


def is_name(text: str) -> bool:
    return 0 < len(text) <= _NAME_LENGTH and text[0] not in "._-" and _NAME.issuperset(text)


def after(seconds: float, then: object) -> None:
    """Have `then` called when it takes too long; Python's own handler would wait for the disk."""
    import _signal  # type: ignore[import-not-found]  # noqa: PLC0415 - `signal` imports enum, which costs a start

    _signal.signal(_signal.SIGALRM, then)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def refuse(*_: object) -> None:
    raise TimeoutError  # an OSError, as any other that a disk answers with


def end(*_: object) -> None:
    os._exit(0)


if __name__ == "__main__":
    try:
        main(sys.argv)
    finally:
        os._exit(0)  # whatever it was: the agent must not notice
