"""Program in a host's PID namespace: lists everything there, or freezes or continues all of it.

It prints the result as JSON. The first process of the namespace is left out: it belongs to the
test.
"""

import json
import os
import signal
import sys
from pathlib import Path


def look() -> list[dict[str, object]]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) in {1, os.getpid()}:
            continue
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            environ = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:
            continue  # it has just ended
        said = dict(one.partition("=")[::2] for one in environ)
        found.append(
            {
                "pid": int(entry.name),
                "state": stat[0],
                "began": int(stat[19]),
                "argv": argv,
                "agent": said.get("REKINDLE_AGENT", ""),
                "launch": said.get("REKINDLE_LAUNCH", ""),
            }
        )
    return [one for one in found if one["state"] not in {"Z", "X"}]


def freeze() -> None:
    """Stop processes until nothing moves: one that was not stopped yet may have started another.

    A parent that is about to start a program stays in state `D` if the child is stopped first.
    """
    told: set[object] = set()
    while moving := [one for one in look() if one["state"] != "T"]:
        if all(one["state"] == "D" and one["pid"] in told for one in moving):
            return
        for one in moving:
            tell(one, signal.SIGSTOP)
            told.add(one["pid"])


def tell(one: dict[str, object], number: signal.Signals) -> None:
    try:
        os.kill(int(str(one["pid"])), number)
    except ProcessLookupError:
        return


def main() -> None:
    match sys.argv[1]:
        case "freeze":
            freeze()
        case "wake":
            for one in look():
                tell(one, signal.SIGCONT)
    json.dump(look(), sys.stdout)


main()
