"""Start child processes that have their own process groups and end when the supervisor exits."""

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from rekindle import ports
from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    BackgroundProcess,
    ProcessVitals,
    SweptProcesses,
)
from rekindle.errors import AgentError, ProgramMissingError
from rekindle.system.processes import (
    detached_start,
    launch_processes,
    process_api,
    program_search,
    stop_signals,
)
from rekindle.system.processes.process_tree import ProcessIdentity
from rekindle.thresholds.supervision import (
    OUTPUT_LINE_BYTES,
    STDERR_BYTES,
    UNSEEN_END_SHARE,
)

_PIPE_BYTES = 1024 * 1024
"""Capacity of a pipe, in bytes."""


class Interruption:
    """Counts stop requests: Ctrl-C, a closed terminal or `kill`."""

    SIGNALS = (*stop_signals.ENDING_SIGNALS, stop_signals.STOP_SIGNAL)

    def __init__(self) -> None:
        self.count = 0
        self.by_hand = False
        """Whether the operator requested the stop, with Ctrl-C or `rekindle stop`."""
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in self.SIGNALS:
            # Leave ignored signals alone: `nohup` and a shell's `&` ignore them on purpose.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note_signal)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]  # as signal() returned it

    def _note_signal(self, number: int, *_: object) -> None:
        self.count += 1
        self.by_hand = self.by_hand or number in {signal.SIGINT, stop_signals.STOP_SIGNAL}


class ChildProcess:
    """A program in its own process group. It ends when this process exits."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        prompt: str,
        environment: Mapping[str, str],
        folder: str,
        keep: Sequence[str] = (),
        adopts: bool = False,
    ) -> None:
        """Start the program. Processes that match `keep` are spared, and `adopts` reaps orphans."""
        self._keep, self._adopts = keep, adopts
        self._errors = bytearray()
        self._code: int | None = None
        with tempfile.TemporaryFile() as stdin:
            # Pass the prompt in a file: writing a long prompt to a pipe would block if nothing
            # reads it.
            stdin.write(prompt.encode("utf-8", "replace"))
            stdin.seek(0)
            with explain_start_errors(argv[0], folder), launch_processes.START_LOCK:
                self._popen = subprocess.Popen(  # noqa: S603 - argv built here, no shell
                    list(argv),
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=dict(environment),
                    cwd=folder,
                    process_group=0,
                    preexec_fn=process_api.here.end_with_parent(  # noqa: PLW1509 - we have no other threads
                        environment.get(LAUNCH_VARIABLE, "")
                    ),
                )
                if not adopts:
                    launch_processes.UNRELATED_CHILDREN.add(self._popen.pid)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def code(self) -> int:
        if self._code is None:
            raise AgentError("the agent is still running")
        return self._code

    @property
    def errors(self) -> str:
        return self._errors.decode("utf-8", "replace")

    def follow(self, every: float) -> Generator[bytes | None, None, None]:
        """Yield lines as they arrive, and None after each idle interval, until it exits."""
        out, err = self._popen.stdout, self._popen.stderr
        if out is None or err is None:
            raise AgentError("the agent's output is not a pipe")
        watched = selectors.DefaultSelector()
        end = process_api.here.watch_exit(self._popen.pid)
        lines = _LineBuffer()
        try:
            for stream in (out, err):
                os.set_blocking(stream.fileno(), False)
                watched.register(stream, selectors.EVENT_READ)
            if end is not None:
                watched.register(end, selectors.EVENT_READ)
            # If the exit cannot be waited for, poll more often.
            patience = every if end is not None else every * UNSEEN_END_SHARE
            while not self._has_ended():
                ready = [key.fileobj for key, _ in watched.select(patience)]
                yield from self._read_ready(ready, lines, watched)
                if self._adopts:
                    launch_processes.reap_adopted(but=self._popen.pid)
                yield None
            # Read only what is available, because leftover processes may keep the streams open.
            yield from self._read_ready([out, err], lines, watched)
            if lines.rest:
                yield lines.rest
        finally:
            watched.close()
            if end is not None:
                os.close(end)
            self._reap_process()

    def _read_ready(
        self, ready: Sequence[object], lines: "_LineBuffer", watched: selectors.BaseSelector
    ) -> Iterator[bytes]:
        """Yield the lines that are available now. A leftover process may write forever."""
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is None or stream not in ready:
                continue
            piece = _read_available(stream.fileno())
            if piece == b"" and stream in watched.get_map():
                watched.unregister(stream)
            elif piece and stream is self._popen.stdout:
                yield from lines.add(piece)
            elif piece:
                self._errors += piece
                del self._errors[:-STDERR_BYTES]

    def _has_ended(self) -> bool:
        """Return whether the program has exited. If possible, do not reap it yet.

        Until it is reaped, its pid cannot be reused.
        """
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._popen.poll() is not None
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._popen.pid, flags) is not None

    def ask_to_end(self) -> None:
        self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        """Signal the whole group. Its leader has not been reaped, so its pid is still ours."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                launch_processes.signal_group(self._popen.pid, number, self._keep)

    def _reap_process(self) -> None:
        if not self._has_ended():
            self.kill()  # the caller has stopped reading
        else:
            self._signal_group(signal.SIGKILL)  # kill the rest of the group
        self._code = self._popen.wait()
        launch_processes.UNRELATED_CHILDREN.discard(self._popen.pid)
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()


class HostProcesses:
    """Starts and ends processes on this host."""

    def __init__(self, *, keep: Sequence[str] = (), adopts: bool = False) -> None:
        """Create the process interface. `keep` lists patterns for processes to spare.

        Set `adopts` in a process that runs only one agent. On Linux, that process then becomes the
        parent of all of the agent's orphans, and ends them with the launch.
        """
        self._keep, self._adopts = tuple(keep), adopts
        self._before: frozenset[ProcessIdentity] | None = None

    def start(
        self, argv: Sequence[str], *, prompt: str, environment: Mapping[str, str], folder: str
    ) -> ports.ProcessHandle:
        self._prepare()
        return ChildProcess(
            argv,
            prompt=prompt,
            environment=environment,
            folder=folder,
            keep=self._keep,
            adopts=self._adopts,
        )

    def _prepare(self) -> None:
        """Record our current descendants, which do not belong to the agent."""
        if self._adopts:
            process_api.here.adopt_orphans()
            self._before = launch_processes.list_descendants()

    def start_detached(
        self, argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path
    ) -> int:
        with explain_start_errors(argv[0], folder):
            return detached_start.start_detached_program(
                argv, environment=environment, folder=folder, output=output
            )

    def boot(self) -> str:
        return launch_processes.identify_boot()

    def uptime(self) -> float:
        return launch_processes.read_uptime()

    def end_launch_processes(
        self,
        mark: str,
        *,
        boot: str,
        uptime: float,
        patience: float,
        recorded: Sequence[str] = (),
        program: str = "",
    ) -> SweptProcesses:
        of = self._make_launch_processes(mark, uptime, program, recorded)
        try:
            return launch_processes.end_launch(of, boot=boot, patience=patience)
        finally:
            if self._adopts:
                launch_processes.reap_adopted()

    def background(
        self, mark: str, *, boot: str, uptime: float, program: str
    ) -> tuple[BackgroundProcess, ...]:
        of = self._make_launch_processes(mark, uptime, program)
        return launch_processes.list_background(of) if boot == self.boot() else ()

    def _make_launch_processes(
        self, mark: str, uptime: float, program: str, recorded: Sequence[str] = ()
    ) -> launch_processes.LaunchProcesses:
        return launch_processes.LaunchProcesses(
            mark, uptime, self._before, recorded, self._keep, program
        )

    def end(self, processes: Collection[str], *, patience: float) -> SweptProcesses:
        return launch_processes.end_processes(processes, patience=patience)

    def identify(self, pid: int) -> str:
        return launch_processes.identify(pid) or ""

    def vitals(self, pid: int, mark: str, *, boot: str, uptime: float) -> ProcessVitals | None:
        return launch_processes.measure_launch(pid, mark, boot=boot, uptime=uptime)

    def is_alive(self, process: str) -> bool:
        return launch_processes.is_alive(process)


class _LineBuffer:
    """Splits incoming bytes into complete lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def rest(self) -> bytes:
        """Return the last line if it has no newline."""
        return bytes(self._rest)

    def add(self, piece: bytes) -> Iterator[bytes]:
        self._rest += piece
        if b"\n" in piece:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            yield from lines
        if len(self._rest) > OUTPUT_LINE_BYTES:
            self._rest.clear()


@contextlib.contextmanager
def explain_start_errors(program: str, folder: str) -> Iterator[None]:
    """Raise an error that explains why a program could not be started."""
    try:
        yield
    except OSError as error:
        if not Path(folder).is_dir():
            raise AgentError(
                f"the agent's folder {folder} does not exist",
                hint="correct `dir:` in rekindle.yaml",
            ) from error
        reason = error.strerror or str(error)
        if error.errno == errno.ENOEXEC:
            reason = "it is neither a binary for this system nor a script that starts with `#!`"
        if interpreter := program_search.find_missing_interpreter(program, folder):
            reason = f"its interpreter {interpreter} is not installed"
        raise ProgramMissingError(program, reason) from error
    except ValueError as error:  # an argument or a variable contains a NUL
        raise AgentError(
            f"{program} could not be started: {error}",
            hint="check `env:` and `command:` in rekindle.yaml",
        ) from error


def _read_available(fd: int) -> bytes | None:
    """Return the available bytes, None if there are none yet, or b"" at the end of the stream."""
    try:
        return os.read(fd, _PIPE_BYTES)
    except BlockingIOError:
        return None
