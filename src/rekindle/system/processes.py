"""Processes: started in groups of their own, followed to their end, and ended with us."""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from rekindle import ports
from rekindle.documents.launch import MARK, Background, Swept, Vitals
from rekindle.errors import AgentError, ProgramMissingError
from rekindle.system import detached, kernel, orphans, programs, signals
from rekindle.system.tree import Identity
from rekindle.thresholds.running import OUTPUT_LINE_BYTES, STDERR_BYTES

_PIPE_BYTES = 1024 * 1024
"""The most that a pipe can hold."""


class Interruption:
    """Notices that somebody wants us to stop: Ctrl-C, a terminal that closes, a `kill`."""

    SIGNALS = (*signals.ENDING, signals.STOP)

    def __init__(self) -> None:
        self.count = 0
        self.by_hand = False
        """The operator asked: Ctrl-C at the terminal, or `rekindle stop` by its signal."""
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in self.SIGNALS:
            # What is ignored stays so: `nohup`, and a shell's `&`, mean it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._notice)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]  # as signal() gave it

    def _notice(self, number: int, *_: object) -> None:
        self.count += 1
        self.by_hand = self.by_hand or number in {signal.SIGINT, signals.STOP}


class Child:
    """A program in a process group of its own; it ends when we do."""

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
        """`keep`: patterns of what no signal to its group is for; `adopts`: we get its orphans."""
        self._keep, self._adopts = keep, adopts
        self._errors = bytearray()
        self._code: int | None = None
        with tempfile.TemporaryFile() as stdin:
            # A file, not a pipe: a long prompt must not wait for a program that does not read it.
            stdin.write(prompt.encode("utf-8", "replace"))
            stdin.seek(0)
            with starting(argv[0], folder), orphans.STARTING:
                self._popen = subprocess.Popen(  # noqa: S603 - an argv of our own making
                    list(argv),
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=dict(environment),
                    cwd=folder,
                    process_group=0,
                    preexec_fn=kernel.here.end_with_parent(  # noqa: PLW1509 - we have no other threads
                        environment.get(MARK, "")
                    ),
                )
                if not adopts:
                    orphans.BESIDE.add(self._popen.pid)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def code(self) -> int:
        if self._code is None:
            raise AgentError("the agent still runs")
        return self._code

    @property
    def errors(self) -> str:
        return self._errors.decode("utf-8", "replace")

    def follow(self, every: float) -> Generator[bytes | None, None, None]:
        """Its lines as they come, and None when none came for a while; ends when it has."""
        out, err = self._popen.stdout, self._popen.stderr
        if out is None or err is None:
            raise AgentError("the agent's output is not ours to read")
        watched = selectors.DefaultSelector()
        end = kernel.here.end_of(self._popen.pid)
        lines = _Lines()
        try:
            for stream in (out, err):
                os.set_blocking(stream.fileno(), False)
                watched.register(stream, selectors.EVENT_READ)
            if end is not None:
                watched.register(end, selectors.EVENT_READ)
            # Where its end cannot be waited for, it is looked for more often.
            patience = every if end is not None else every / 10
            while not self._has_ended():
                ready = [key.fileobj for key, _ in watched.select(patience)]
                yield from self._read(ready, lines, watched)
                if self._adopts:
                    orphans.reap_adopted(but=self._popen.pid)
                yield None
            # Not to the end of the streams: what it left behind may still hold them open.
            yield from self._read([out, err], lines, watched)
            if lines.rest:
                yield lines.rest
        finally:
            watched.close()
            if end is not None:
                os.close(end)
            self._reap()

    def _read(
        self, ready: Sequence[object], lines: "_Lines", watched: selectors.BaseSelector
    ) -> Iterator[bytes]:
        """What the streams hold now, and no more: somebody may write into them without end."""
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is None or stream not in ready:
                continue
            piece = _read_some(stream.fileno())
            if piece == b"" and stream in watched.get_map():
                watched.unregister(stream)
            elif piece and stream is self._popen.stdout:
                yield from lines.add(piece)
            elif piece:
                self._errors += piece
                del self._errors[:-STDERR_BYTES]

    def _has_ended(self) -> bool:
        """Where the system lets us look without waiting for it, its number stays its until then."""
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._popen.poll() is not None
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._popen.pid, flags) is not None

    def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """To the whole group; before we have waited for its leader the number is surely its."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                orphans.signal_group(self._popen.pid, number, self._keep)

    def _reap(self) -> None:
        if not self._has_ended():
            self.kill()  # whoever followed has given up
        else:
            self._signal(signal.SIGKILL)  # the rest of its group
        self._code = self._popen.wait()
        orphans.BESIDE.discard(self._popen.pid)
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()


class Processes:
    """The processes of this host, as far as they are ours."""

    def __init__(self, *, keep: Sequence[str] = (), adopts: bool = False) -> None:
        """`keep`: patterns of command lines that outlive a launch.

        `adopts`: for a process that runs one agent and nothing beside it. It becomes the parent of
        every orphan of the agent (Linux), and ends those with the launch.
        """
        self._keep, self._adopts = tuple(keep), adopts
        self._before: frozenset[Identity] | None = None

    def start(
        self, argv: Sequence[str], *, prompt: str, environment: Mapping[str, str], folder: str
    ) -> ports.Child:
        self._prepare()
        return Child(
            argv,
            prompt=prompt,
            environment=environment,
            folder=folder,
            keep=self._keep,
            adopts=self._adopts,
        )

    def _prepare(self) -> None:
        """Note what is below us already: it is not the agent's."""
        if self._adopts:
            kernel.here.adopt_orphans()
            self._before = orphans.below_us()

    def start_detached(
        self, argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path
    ) -> int:
        with starting(argv[0], folder):
            return detached.start(argv, environment=environment, folder=folder, output=output)

    def boot(self) -> str:
        return orphans.this_boot()

    def uptime(self) -> float:
        return orphans.uptime()

    def end_marked(
        self,
        mark: str,
        *,
        boot: str,
        uptime: float,
        patience: float,
        recorded: Sequence[str] = (),
        program: str = "",
    ) -> Swept:
        of = self._belongings(mark, uptime, program, recorded)
        try:
            return orphans.end_launch(of, boot=boot, patience=patience)
        finally:
            if self._adopts:
                orphans.reap_adopted()

    def background(
        self, mark: str, *, boot: str, uptime: float, program: str
    ) -> tuple[Background, ...]:
        of = self._belongings(mark, uptime, program)
        return orphans.in_background(of) if boot == self.boot() else ()

    def _belongings(
        self, mark: str, uptime: float, program: str, recorded: Sequence[str] = ()
    ) -> orphans.Belongings:
        return orphans.Belongings(mark, uptime, self._before, recorded, self._keep, program)

    def end(self, processes: Collection[str], *, patience: float) -> Swept:
        return orphans.end_processes(processes, patience=patience)

    def identify(self, pid: int) -> str:
        return orphans.identify(pid) or ""

    def vitals(self, pid: int, mark: str, *, boot: str, uptime: float) -> Vitals | None:
        return orphans.vitals(pid, mark, boot=boot, uptime=uptime)

    def is_alive(self, process: str) -> bool:
        return orphans.is_alive(process)


class _Lines:
    """Bytes as they come, given on as whole lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def rest(self) -> bytes:
        """The last line, where its end is missing."""
        return bytes(self._rest)

    def add(self, piece: bytes) -> Iterator[bytes]:
        self._rest += piece
        if b"\n" in piece:
            *whole, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            yield from whole
        if len(self._rest) > OUTPUT_LINE_BYTES:
            self._rest.clear()


@contextlib.contextmanager
def starting(program: str, folder: str) -> Iterator[None]:
    """Say why a program could not be started, in words that help."""
    try:
        yield
    except OSError as error:
        if not Path(folder).is_dir():
            raise AgentError(
                f"the agent's folder {folder} is not there", hint="correct `dir:` in rekindle.yaml"
            ) from error
        reason = error.strerror or str(error)
        if interpreter := programs.missing_interpreter(program, folder):
            reason = f"its interpreter {interpreter} is not installed"
        raise ProgramMissingError(program, reason) from error
    except ValueError as error:  # a NUL in what was to be its words or its environment
        raise AgentError(
            f"{program} could not be started: {error}",
            hint="look at `env:` and `command:` in rekindle.yaml",
        ) from error


def _read_some(fd: int) -> bytes | None:
    """What is there; empty at the end of the stream, None where there is nothing yet."""
    try:
        return os.read(fd, _PIPE_BYTES)
    except BlockingIOError:
        return None
