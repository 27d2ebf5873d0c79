"""Record one event from an agent CLI, and answer the CLI if a rule requires an answer."""

import os
import sys
import time

from rekindle.hook.host_facts import is_name
from rekindle.hook.payload import find_payload_limits, read_payload
from rekindle.hook.record_writer import INBOX_DEPTH, append_record, spool_record
from rekindle.hook.session_agent import find_folder, is_supervised, read_variable
from rekindle.hook.session_brake import brake_session
from rekindle.hook.session_primer import needs_primer, prime_session
from rekindle.hook.special_events import BRAKE_EVENTS
from rekindle.hook.timeouts import (
    BRAKING_SECONDS,
    PATIENCE_SECONDS,
    call_after,
    exit_now,
    raise_timeout,
)


def main(arguments: list[str]) -> None:
    if "REKINDLE_ONE_SHOT" in os.environ:
        return  # Rekindle asked the CLI a question outside any agent's session
    harness, event = arguments[1], arguments[2]
    payload, size = read_payload(0, *find_payload_limits(event))
    launch = os.environ.get("REKINDLE_LAUNCH", "")
    if event in BRAKE_EVENTS and not launch:
        return
    # Allow more time for an event that can stop a session, so that it also works on a busy host.
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
    # A pid from a sandbox is meaningless outside it, and the session ends with its launch.
    is_named = event.startswith("SessionStart") and "REKINDLE_MARKS" not in os.environ
    process = identify(harness) if is_named else ""
    record = compose_record(harness, event, launch, payload, size, process=process)
    # If the disk hangs or refuses the write, the record goes to a spool.
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
    """Return a record as one line. The newline before it ends a previous record that was torn."""
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
    # JSON strings contain no raw line breaks, and elsewhere a space is equivalent.
    line = payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"\n" + " ".join(words).encode() + b" " + line + b"\n"


def identify(harness: str) -> str:
    """Return an id for the CLI's process that stays unique even if its pid is reused."""
    announced = read_variable(harness, "PID")
    pid = announced if announced.isdecimal() else str(os.getppid())
    try:
        name, facts = read_stat(pid)
        if pid != announced and name.endswith(b"sh"):
            pid = facts[1].decode()  # the parent is a shell that only runs the hook
            name, facts = read_stat(pid)
        started = facts[19].decode()
        # A pid is meaningless in another namespace, for example in a container.
        namespace = os.readlink("/proc/self/ns/pid")[5:-1]  # noqa: PTH115 - pathlib slows the start
        with open("/proc/sys/kernel/random/boot_id", "rb") as boot:  # noqa: PTH123 - as above
            return f"{pid}.{started}.{boot.read(8).decode()}.{namespace}"
    except (OSError, IndexError):
        return pid  # macOS has no /proc


def read_stat(pid: str) -> tuple[bytes, list[bytes]]:
    """Return a process's name, and the fields after it: state, parent, …, start time."""
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - pathlib slows the start
        name, _, rest = stat.read().partition(b"(")[2].rpartition(b")")
    return name, rest.split()


if __name__ == "__main__":
    try:
        main(sys.argv)
    finally:
        os._exit(0)  # the agent must not notice any failure
