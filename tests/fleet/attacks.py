#!/usr/bin/env python3
"""Programs of agents that attack their host, each within bounds that a broken sandbox survives.

    python attacks.py NAME

The variable PATHS lists files to read. A sandbox shows files that a command names, so they are not
in it. A program writes the result to `result.json` in its folder, and fails if the attack does.
"""

import json
import os
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path

MEMORY_MEBIBYTES = 768
BLOCK_MEBIBYTES = 32
FILLED_MEBIBYTES = 128
FORKS = 150
CANARY = b"canary-of-the-worker"
METADATA = "169.254.169.254"


def eat_memory() -> None:
    blocks = []
    for eaten in range(BLOCK_MEBIBYTES, MEMORY_MEBIBYTES + 1, BLOCK_MEBIBYTES):
        blocks.append(bytearray(b"x") * (BLOCK_MEBIBYTES << 20))
        tell(eaten)


def fill_folders() -> None:
    """Fill the folders that are in memory."""
    filled = dict.fromkeys(("/tmp", "/dev/shm", "/dev"), 0)  # noqa: S108 - those of the sandbox
    for folder in filled:
        try:
            with Path(folder, "filling").open("wb", buffering=0) as file:
                while filled[folder] < FILLED_MEBIBYTES:
                    filled[folder] += file.write(bytes(1 << 20)) >> 20
        except OSError as error:
            print(f"{folder}: {error}", file=sys.stderr)
        tell(filled)


def fork_without_end() -> None:
    children = []
    try:
        for count in range(1, FORKS + 1):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
            tell(count)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)


def read_all() -> None:
    paths = json.loads(os.environ["PATHS"])
    tell({path: _read(path) for path in paths})
    if failed := [path for path in paths if not os.access(path, os.R_OK)]:
        raise PermissionError(f"cannot read {failed[0]}")


def read_credentials() -> None:
    paths = json.loads(os.environ["PATHS"])
    environments = [path for path in Path("/proc").glob("[0-9]*/environ") if _holds_canary(path)]
    found = {path: _read(path) for path in paths} | {"environment": bool(environments)}
    tell(found)
    if not environments or None in found.values():
        raise PermissionError("the host's credentials cannot be read")


def ask_metadata() -> None:
    answers = {}
    for name, ask in (("direct", _ask_directly), ("as usual", _ask_as_usual)):
        try:
            answers[name] = ask()
        except OSError as error:
            answers[name] = None
            print(f"{name}: {error}", file=sys.stderr)
    tell(answers)
    if not all(answers.values()):
        raise ConnectionError("no answer from the metadata service")


def work() -> None:
    """Be the neighbour: count until the test says that it is enough."""
    count = 0
    while not Path("enough").exists():
        count += 1
        tell(count)
        time.sleep(0.05)


def tell(result: object) -> None:
    Path("result.new").write_text(json.dumps(result))
    Path("result.new").replace("result.json")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None


def _holds_canary(path: Path) -> bool:
    try:
        return CANARY in path.read_bytes()
    except OSError:
        return False


def _ask_directly() -> str:
    with socket.create_connection((METADATA, 80), 5) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.makefile().read()


def _ask_as_usual() -> str:
    with urllib.request.urlopen(f"http://{METADATA}/", timeout=5) as answer:
        return answer.read().decode()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
