"""Make a process hang for good: it stays alive, uses no processor time and does nothing more.

Each thread that waits in a system call finds, when it returns from it, an endless loop of `pause`
instead of its own code. The program's own timeouts do not end this, because no thread runs them.
"""

import platform
import struct
import time
from pathlib import Path
from typing import Final

from loopback.place import Place

_LOOPS: Final = {
    # mov eax, 34; syscall; jmp -9
    "x86_64": bytes.fromhex("b8220000000f05ebf7"),
    # mov x8, #73 (ppoll); mov x0..x4, #0; svc #0; b -28
    "aarch64": struct.pack(
        "<8I",
        0xD2800928,
        *(0xD2800000 | register for register in range(5)),
        0xD4000001,
        0x17FFFFF9,
    ),
}
_TRIES: Final = 200


def hang(place: Place, pid: int) -> int:
    """Make a process of a place hang; return the number of its threads that do."""
    found = _outside(place, pid)
    loop = _LOOPS[platform.machine()]
    counters: set[int] = set()
    for _ in range(_TRIES):  # the main thread may be running just now
        counters |= _read_counters(found)
        if _is_waiting(found / "syscall"):
            break
        time.sleep(0.01)
    assert _is_waiting(found / "syscall"), "its main thread does not wait for anything"
    with (found / "mem").open("r+b", buffering=0) as memory:
        for counter in counters:
            memory.seek(counter)
            memory.write(loop)
    return len(list((found / "task").iterdir()))


def _outside(place: Place, pid: int) -> Path:
    """Return the folder in /proc of a process, as this process sees it."""
    init = place._init.pid
    (child,) = Path(f"/proc/{init}/task/{init}/children").read_text().split()
    own = Path(f"/proc/{child}/ns/pid").readlink()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            lines = (entry / "status").read_text().splitlines()
            is_here = (entry / "ns/pid").readlink() == own
        except OSError:
            continue
        inner = next(line for line in lines if line.startswith("NSpid:")).split()[-1]
        if is_here and int(inner) == pid:
            return entry
    raise ProcessLookupError(pid)


def _is_waiting(path: Path) -> bool:
    return len(path.read_text().split()) == 9


def _read_counters(process: Path) -> set[int]:
    """Return where its waiting threads will continue."""
    found = set()
    for thread in (process / "task").iterdir():
        words = (thread / "syscall").read_text().split()
        if len(words) == 9:
            found.add(int(words[8], 16))
    return found
