"""The first process of a PID namespace: it starts, signals and lists processes for the test.

One request per line of standard input, one answer per line of standard output, both JSON. It exits
at the end of standard input, and the kernel ends everything else in the namespace with it.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path


def say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def start(argv: list[str], env: dict[str, str], cwd: str, to: str) -> int:
    with (
        Path(to, "stdin").open("rb") as stdin,
        Path(to, "stdout").open("wb") as stdout,
        Path(to, "stderr").open("wb") as stderr,
    ):
        child = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd)
    child.returncode = 0  # reaped below, with all orphans
    return child.pid


def processes() -> list[dict[str, object]]:
    """Return every process in here except this program; zombies are dead."""
    found: list[dict[str, object]] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:
            continue
        if state not in {"Z", "X"}:
            found.append({"pid": int(entry.name), "argv": argv, "parent": int(parent)})
    return found


def answer(request: dict) -> dict[str, object]:
    try:
        match request["do"]:
            case "start":
                return {"pid": start(*(request[key] for key in ("argv", "env", "cwd", "to")))}
            case "signal":
                try:
                    os.kill(request["pid"], request["number"])
                except ProcessLookupError:
                    # Its parent killed it a moment before us: it is gone, as wanted.
                    if request["number"] != signal.SIGKILL:
                        raise
                return {}
            case _:
                return {"processes": processes()}
    except OSError as error:
        return {"error": str(error)}


def reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        say(ended=pid, code=os.waitstatus_to_exitcode(status))


def main() -> None:
    if sys.argv[1:]:
        socket.sethostname(sys.argv[1])
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer)
    rest = b""
    say(ready=True)
    while True:
        ready, _, _ = select.select([0, reader], [], [])
        if reader in ready:
            os.read(reader, 4096)
            reap()
        if 0 in ready:
            piece = os.read(0, 65536)
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                request = json.loads(line)
                say(id=request["id"], **answer(request))


main()
