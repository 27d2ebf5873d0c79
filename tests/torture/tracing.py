"""Run a callable in a forked child under ptrace: list its system calls, or break it at some.

A work is one process of one thread: its trial ends in an AssertionError if it would start another
thread or program. Its imports should be done beforehand: the child is a fork of this process, so
whatever is cold here is cold again in every trial.

Counts repeat exactly. For that, calls that only manage the process's own memory (brk, munmap,
anonymous mmap and their like) are neither counted nor listed: whether an allocation needs one
depends on the heap that the child inherits, and nothing outside could tell whether it was made.

Signals reach the work as they would without a tracer, except two: a stop signal does not hold it,
and SIGALRM belongs to the guard that ends a trial after `LIMIT_S`.

Linux only; `obstacle` returns what, if anything, prevents tracing on this machine.
"""

import ctypes
import functools
import gc
import os
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

Say = Callable[[bytes], None]
Work = Callable[[Say], None]

LIMIT_S: Final = 30.0
RAISED: Final = 70  # the exit code of a work that raised; sysexits.h calls it EX_SOFTWARE


@dataclass(frozen=True, slots=True)
class Call:
    """One system call, in the order of entry.

    Attributes:
        number: As the kernel counts on this architecture.
        name: Of the calls in this module's table; None for any other.
        args: The six argument registers, unsigned, whether the call uses them or not.
        result: What it returned, a negative errno on failure; None if it never returned.
        path: What the descriptor in the first argument stood for at entry, for the calls that
            take one there; else the path that it names. Only when paths were asked for.
    """

    number: int
    name: str | None
    args: tuple[int, ...]
    result: int | None
    path: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, from the `at`-th call on.

    Attributes:
        at: Counted from 1, as for a kill.
        errno: What the calls answer, without being made; None: writes that are cut to their half.
        times: How many calls it strikes.
        strikes: Which ones.
    """

    at: int
    errno: int | None
    times: int
    strikes: Callable[[Call], bool]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended.

    Attributes:
        calls: The system calls that were let through.
        killed_at: The 1-based call before which the work was killed; None if it ended by itself.
        exit_code: None if a signal ended the work.
        signal: The one that ended the work; None if it exited.
        said: Every byte that the work reported before its end.
        struck: The calls that a fault struck.
    """

    calls: int
    killed_at: int | None
    exit_code: int | None
    signal: int | None
    said: bytes
    struck: int = 0


def trace(work: Work, *, paths: bool = False) -> tuple[Outcome, list[Call]]:
    """Run the work to its end and list its system calls, its own exit excepted."""
    calls: list[Call] = []
    return _try(work, log=calls, paths=paths), calls


def kill_before(work: Work, n: int) -> Outcome:
    """Kill the work just before its n-th system call executes.

    Raises:
        AssertionError: The work is not one process of one thread, or it outlived its kill.
        TimeoutError: The trial outlasted its limit.
    """
    if n < 1:
        raise ValueError(f"calls are counted from 1, not from {n}")
    return _try(work, kill_at=n)


def fail(work: Work, fault: Fault) -> tuple[Outcome, list[Call]]:
    """Run the work to its end while some of its calls fail, and list them all with their paths."""
    calls: list[Call] = []
    return _try(work, log=calls, paths=True, fault=fault), calls


def count(work: Work) -> int:
    """The number of system calls that the work makes when nothing stops it."""
    return _try(work).calls


def obstacle_to_faults() -> str | None:
    """Why no call can be made to fail here, or None if it can."""
    if _MACHINE != "x86_64":
        return f"calls are made to fail through the registers of x86_64, not of {_MACHINE}"
    return obstacle()


@functools.cache
def obstacle() -> str | None:
    """Why nothing can be traced here, or None if it can."""
    if sys.platform != "linux":
        return f"tracing needs Linux, and this is {sys.platform}"
    if _MACHINE not in {"x86_64", "aarch64"}:
        return f"tracing knows the system calls of x86_64 and aarch64, not of {_MACHINE}"
    try:
        kill_before(lambda say: say(b"."), 1)
    except OSError as error:
        return f"ptrace is not permitted here: {error}"
    return None


# --- the kernel's side -----------------------------------------------------------------------

_TRACEME: Final = 0
_POKEUSER: Final = 6
_CONT: Final = 7
_SYSCALL: Final = 24
_SETOPTIONS: Final = 0x4200
_GET_SYSCALL_INFO: Final = 0x420E

_OPTIONS: Final = (
    0x1  # TRACESYSGOOD: a stop at a system call is told from a SIGTRAP
    | 0x100000  # EXITKILL: if the tracer dies, so does the child
)
_CALL_STOP: Final = signal.SIGTRAP | 0x80
# The start of struct ptrace_syscall_info: the kind of stop; then, at an entry, the number of the
# call and its arguments, or, at an exit, its result.
_INFO: Final = struct.Struct("=B23xq6Q")
_info: Final = ctypes.create_string_buffer(_INFO.size)
_ENTRY: Final = 1  # PTRACE_SYSCALL_INFO_ENTRY
_MAP_ANONYMOUS: Final = 0x20
# The offsets of the registers in struct user of x86_64.
_RESULT: Final = 10 * 8  # rax
_THIRD: Final = 12 * 8  # rdx
_NUMBER: Final = 15 * 8  # orig_rax
_NO_CALL: Final = 2**64 - 1
_PATH_LIMIT: Final = 4096

# A number of no system call. The child makes it when the work is over: its entry is seen like any
# other, on every architecture, and the kernel answers ENOSYS.
_OVER: Final = 0x2E57_0000

# PyDLL keeps the GIL: these calls never block, and handing the GIL over costs more than they do.
_libc: Final = ctypes.PyDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t)
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, pid, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


# What a work that keeps files calls: (number on x86-64, number on aarch64), -1 where there is none.
# fmt: off
_ON_DESCRIPTOR: Final = {  # those whose first argument is one
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62),
    "ioctl": (16, 29), "pread64": (17, 67), "pwrite64": (18, 68), "writev": (20, 66),
    "dup": (32, 23), "dup2": (33, -1), "fcntl": (72, 25), "flock": (73, 32), "fsync": (74, 82),
    "fdatasync": (75, 83), "ftruncate": (77, 46), "fchmod": (91, 52), "getdents64": (217, 61),
    "openat": (257, 56), "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35),
    "renameat": (264, 38), "linkat": (265, 37), "readlinkat": (267, 78), "fchmodat": (268, 53),
    "faccessat": (269, 48), "utimensat": (280, 88), "fallocate": (285, 47), "dup3": (292, 24),
    "renameat2": (316, 276), "copy_file_range": (326, 285), "statx": (332, 291),
}
_OWN_MEMORY: Final = {
    "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216),
    "madvise": (28, 233),
}
_FORBIDDEN: Final = {  # each starts a process, a thread or another program
    "clone": (56, 220), "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221),
    "execveat": (322, 281), "clone3": (435, 435),
}
_OTHERS: Final = {
    "open": (2, -1), "stat": (4, -1), "lstat": (6, -1), "mmap": (9, 222), "access": (21, -1),
    "getpid": (39, 172), "kill": (62, 129), "getcwd": (79, 17), "chdir": (80, 49),
    "rename": (82, -1), "mkdir": (83, -1), "rmdir": (84, -1), "link": (86, -1), "unlink": (87, -1),
    "symlink": (88, -1), "readlink": (89, -1), "chmod": (90, -1), "clock_nanosleep": (230, 115),
    "exit_group": (231, 94), "symlinkat": (266, 36), "getrandom": (318, 278),
}
# fmt: on
_NAMING_SECOND: Final = {"openat", "mkdirat", "newfstatat", "unlinkat", "renameat", "statx"}
_NAMING_FIRST: Final = {
    *("open", "stat", "lstat", "access", "rename", "mkdir", "rmdir", "link", "unlink", "readlink"),
    "chmod",
}
_MACHINE: Final = os.uname().machine
_NAMES: Final = {
    numbers[_MACHINE == "aarch64"]: name
    for table in (_ON_DESCRIPTOR, _OWN_MEMORY, _FORBIDDEN, _OTHERS)
    for name, numbers in table.items()
}
_NAMES.pop(-1, None)


# --- the child's side ------------------------------------------------------------------------


def _live(work: Work, report: int) -> NoReturn:
    """All that the forked child does; whatever happens in it, it ends here."""

    def say(data: bytes) -> None:
        os.write(report, data)

    status = RAISED
    try:
        gc.disable()  # when a collection comes due depends on what the parent did before
        try:
            _ptrace(_TRACEME, 0)
        except OSError as error:
            os._exit(error.errno or RAISED)
        # The guard. A signal stops a traced process and is shown to its tracer before anything
        # else becomes of it, and this one comes even if the work sleeps or spins.
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        os.kill(os.getpid(), signal.SIGSTOP)
        try:
            work(say)
        finally:
            _libc.syscall(_OVER)
        status = 0
    except BaseException:  # noqa: BLE001 - not even SystemExit may reach the frames of the parent
        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        os._exit(status)


# --- the parent's side -----------------------------------------------------------------------


def _try(
    work: Work,
    *,
    kill_at: int | None = None,
    log: list[Call] | None = None,
    paths: bool = False,
    fault: Fault | None = None,
) -> Outcome:
    processors = os.sched_getaffinity(0)
    report = os.memfd_create("said")  # unlike a pipe it holds all that the work may say
    try:
        # Tracer and child always wait for each other; waking one on another processor doubles the
        # time of every stop. The child inherits this.
        os.sched_setaffinity(0, {_libc.sched_getcpu()})
        trial = _Trial(_fork(work, report), kill_at, log, paths, fault)
        try:
            killed = trial.follow()
        finally:
            end = trial.kill()
        if killed and end != -signal.SIGKILL:
            raise AssertionError(f"killed before call {kill_at}, but it ended with {end}")
        return Outcome(
            calls=trial.calls,
            killed_at=kill_at if killed else None,
            exit_code=end if end >= 0 else None,
            signal=-end if end < 0 else None,
            said=os.pread(report, os.fstat(report).st_size, 0),
            struck=trial.struck,
        )
    finally:
        os.close(report)
        os.sched_setaffinity(0, processors)


def _fork(work: Work, report: int) -> int:
    with warnings.catch_warnings():
        # Python 3.12 and later warn of any fork beside other threads, since a lock that one of
        # them holds stays locked in the child. A test runner's threads only carry its messages;
        # a work that takes one of their locks ends in this module's own TimeoutError.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _live(work, report)
    return child


@dataclass(slots=True)
class _Trial:
    child: int
    kill_at: int | None
    log: list[Call] | None
    paths: bool
    fault: Fault | None = None
    struck: int = 0
    answer: int | None = None  # the value that the child's current call returns instead
    calls: int = 0
    listed: bool = False  # whether the child's current call is the last of the log
    over: bool = False  # whether the work is over: later calls are the child's own
    end: int | None = None  # the exit code, or the negative signal, once the child is reaped

    def follow(self) -> bool:
        """Let the child run: true if it is about to make the call, false if it ended before."""
        if self._wait() is None:
            raise OSError(self.end, os.strerror(self.end or 0))
        _ptrace(_SETOPTIONS, self.child, 0, _OPTIONS)
        pass_on = 0
        while True:
            _ptrace(_CONT if self.over else _SYSCALL, self.child, 0, pass_on)
            stop = self._wait()
            if stop is None:
                return False
            if stop == signal.SIGALRM:
                raise TimeoutError(f"the trial outlasted its {LIMIT_S:g} s and was killed")
            pass_on = 0 if stop == _CALL_STOP else stop
            if stop == _CALL_STOP and self._at_call():
                return True

    def kill(self) -> int:
        """Kill and reap the child unless it has ended, and say how it did."""
        while self.end is None:
            os.kill(self.child, signal.SIGKILL)
            self._wait()
        return self.end

    def _wait(self) -> int | None:
        """Wait for the child: the signal at which it stopped, or None if it ended."""
        _, status = os.waitpid(self.child, 0)
        if os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        self.end = os.waitstatus_to_exitcode(status)
        return None

    def _at_call(self) -> bool:
        """Note the entry or the exit at which the child stopped; true if it must not go on."""
        _ptrace(_GET_SYSCALL_INFO, self.child, _INFO.size, ctypes.addressof(_info))
        kind, number_or_result, *args = _INFO.unpack(_info)
        if kind == _ENTRY:
            return self._enter(number_or_result, tuple(args))
        if self.answer is not None:
            _ptrace(_POKEUSER, self.child, _RESULT, self.answer % 2**64)
            number_or_result, self.answer = self.answer, None
        if self.log and self.listed:
            self.log[-1] = replace(self.log[-1], result=number_or_result)
        return False

    def _enter(self, number: int, args: tuple[int, ...]) -> bool:
        name = _NAMES.get(number)
        self.listed = False
        self.over = number == _OVER
        if self.over or name in _OWN_MEMORY or (name == "mmap" and args[3] & _MAP_ANONYMOUS):
            return False
        if name in _FORBIDDEN:
            raise AssertionError(
                f"a traced work must be one process of one thread: it called {name}"
            )
        if self.calls + 1 == self.kill_at:
            return True
        self.calls += 1
        if self.log is not None:
            call = Call(number, name, args, None, self._named(name, args) if self.paths else None)
            self.log.append(call)
            self.listed = True
            self._strike(call)
        return False

    def _strike(self, call: Call) -> None:
        fault = self.fault
        if fault is None or self.calls < fault.at or self.struck >= fault.times:
            return
        if not fault.strikes(call):
            return
        self.struck += 1
        if fault.errno is None:
            _ptrace(_POKEUSER, self.child, _THIRD, max(1, call.args[2] // 2))
        else:
            _ptrace(_POKEUSER, self.child, _NUMBER, _NO_CALL)
            self.answer = -fault.errno

    def _named(self, name: str | None, args: tuple[int, ...]) -> str | None:
        if name in _NAMING_FIRST:
            return self._text(args[0])
        found = self._path(args[0]) if name in _ON_DESCRIPTOR or name in _NAMING_SECOND else None
        text = self._text(args[1]) if name in _NAMING_SECOND else None
        return str(Path(found or "", text)) if text else found

    def _text(self, address: int) -> str | None:
        """The string at an address of the child's memory."""
        with open(f"/proc/{self.child}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - no path
            try:
                memory.seek(address)
                return memory.read(_PATH_LIMIT).partition(b"\0")[0].decode(errors="replace")
            except (OSError, ValueError, OverflowError):  # a null pointer, or the end of a mapping
                return None

    def _path(self, argument: int) -> str | None:
        descriptor = argument & 0xFFFFFFFF  # the register is wider than an int
        try:
            return os.readlink(f"/proc/{self.child}/fd/{descriptor}")  # noqa: PTH115 - or no path
        except OSError:  # not open, or AT_FDCWD
            return None
