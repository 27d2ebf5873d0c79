import errno
import mmap
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from prerequisites import needs
from torture import tracing
from torture.tracing import (
    Fault,
    Say,
    count,
    fail,
    kill_before,
    obstacle,
    obstacle_to_faults,
    trace,
)

pytestmark = needs(obstacle())


class Replacement:
    """A work that replaces a file, reports it and continues, with the state after each kill."""

    # The calls of the work, and what is seen if each of them is never made:
    # the temporary file, the target, and what was said.
    STEPS = (
        ("openat", None, b"old", b""),
        ("write", b"", b"old", b""),
        ("fsync", b"new", b"old", b""),
        ("close", b"new", b"old", b""),
        ("rename", b"new", b"old", b""),
        ("write", None, b"new", b""),
        ("mkdir", None, b"new", b"done"),
    )

    def __init__(self, directory: Path) -> None:
        self.temporary = directory / "target.tmp"
        self.target = directory / "target"
        self.after = directory / "after"

    def reset(self) -> None:
        self.temporary.unlink(missing_ok=True)
        self.target.write_bytes(b"old")
        if self.after.exists():
            self.after.rmdir()

    def work(self, say: Say) -> None:
        descriptor = os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, b"new")
        os.fsync(descriptor)
        os.close(descriptor)
        self.temporary.rename(self.target)
        say(b"done")
        self.after.mkdir()

    def seen(self) -> tuple[bytes | None, bytes]:
        there = self.temporary.exists()
        return (self.temporary.read_bytes() if there else None), self.target.read_bytes()


@pytest.fixture
def replacement(tmp_path: Path) -> Replacement:
    made = Replacement(tmp_path.resolve())
    made.reset()
    return made


def family(name: str | None) -> str | None:
    """The name that a call shares with its newer forms; which is used depends on the machine."""
    return next((old for old in ("rename", "mkdir") if name and name.startswith(old)), name)


def nothing(say: Say) -> None:
    pass


def test_a_trace_lists_the_calls_by_name_in_order(replacement):
    """A trace names every call of the work, and no call of the tracer's own, in order."""
    outcome, calls = trace(replacement.work)
    assert [family(call.name) for call in calls] == [step[0] for step in Replacement.STEPS]
    assert outcome == tracing.Outcome(
        calls=len(calls), killed_at=None, exit_code=0, signal=None, said=b"done"
    )
    assert replacement.seen() == (None, b"new")


def test_a_trace_holds_arguments_results_and_paths(replacement):
    """Each call carries its registers, its result and, on demand, the file it was made on."""
    _, calls = trace(replacement.work, paths=True)
    opened, written, synced, closed, renamed, said, _ = calls
    assert opened.result == written.args[0] == synced.args[0] == closed.args[0]
    assert (written.args[2], written.result) == (3, 3)
    assert written.path == synced.path == closed.path == str(replacement.temporary)
    assert (renamed.path, renamed.result) == (str(replacement.temporary), 0)
    assert said.path is not None
    assert said.path.startswith("/memfd:said")
    replacement.reset()
    assert {call.path for call in trace(replacement.work)[1]} == {None}


def test_a_failed_call_shows_its_errno(tmp_path):
    """The result of a call that failed is its errno, negative."""

    def work(say: Say) -> None:
        (tmp_path / "absent").unlink(missing_ok=True)

    _, calls = trace(work)
    assert [call.result for call in calls] == [-2]


def test_a_kill_before_each_call_leaves_exactly_the_effects_before_it(replacement):
    """Whichever call the kill precedes, all calls before it took effect, and it did not."""
    assert count(replacement.work) == len(Replacement.STEPS)
    for n, (name, temporary, target, said) in enumerate(Replacement.STEPS, 1):
        replacement.reset()
        outcome = kill_before(replacement.work, n)
        assert outcome == tracing.Outcome(
            calls=n - 1, killed_at=n, exit_code=None, signal=signal.SIGKILL, said=said
        ), name
        assert replacement.seen() == (temporary, target), name
        assert not replacement.after.exists(), name


def test_a_kill_past_the_end_lets_the_work_finish(replacement):
    """A work with fewer calls ends by itself, and is not reported as killed."""
    outcome = kill_before(replacement.work, len(Replacement.STEPS) + 1)
    assert outcome == tracing.Outcome(
        calls=len(Replacement.STEPS), killed_at=None, exit_code=0, signal=None, said=b"done"
    )
    assert replacement.seen() == (None, b"new")
    assert replacement.after.exists()


def test_calls_are_counted_from_one():
    """There is no call before the first."""
    with pytest.raises(ValueError, match="counted from 1"):
        kill_before(nothing, 0)


def test_an_exception_is_exit_code_70(capfd):
    """A work that raises exits with 70, its traceback on standard error and not in the count."""

    def work(say: Say) -> None:
        say(b"before")
        raise SystemExit("the work gave up")

    outcome, calls = trace(work)
    assert outcome == tracing.Outcome(
        calls=1, killed_at=None, exit_code=70, signal=None, said=b"before"
    )
    assert [call.name for call in calls] == ["write"]
    assert "SystemExit: the work gave up" in capfd.readouterr().err


def test_calls_for_memory_alone_do_not_count():
    """Calls that depend on the heap that the child inherits are not listed or counted."""

    def work(say: Say) -> None:
        bytearray(1 << 24)
        [bytes(100) for _ in range(100_000)]

    assert trace(work)[1] == []
    assert count(work) == 0


def test_a_mapped_file_does_count(tmp_path):
    """Mapping a file changes more than the process's memory."""
    file = tmp_path / "file"
    file.write_bytes(bytes(4096))

    def work(say: Say) -> None:
        with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0):
            pass

    assert "mmap" in [call.name for call in trace(work)[1]]


def test_counts_repeat(tmp_path):
    """The same work makes the same number of calls whatever the parent does between its trials."""

    def work(say: Say) -> None:
        (tmp_path / "numbers").write_text(" ".join(str(number) for number in range(20_000)))

    kept: list[list[bytes]] = []
    counts = set()
    for step in range(10):
        counts.add(count(work))
        kept.append([bytes(size) for size in range(0, 300 * step, 7)])
        del kept[::3]
    assert len(counts) == 1


def test_reports_are_kept_whole():
    """Whatever a work says, in however many reports of whatever size, is kept in order."""
    reports = [bytes([number]) * 4096 for number in range(100)] + [b"." * (1 << 20)]

    def work(say: Say) -> None:
        for report in reports:
            say(report)

    outcome, calls = trace(work)
    assert len(calls) == len(reports)
    assert outcome.said == b"".join(reports)


def start_thread() -> None:
    threading.Thread(target=int).start()


def start_program() -> None:
    subprocess.run(["true"], check=True)


def become_program() -> None:
    os.execv("/bin/true", ["true"])  # noqa: S606 - no shell is wanted


@pytest.mark.parametrize(
    ("start", "calls"),
    [
        (os.fork, "clone|fork"),
        (start_thread, "clone3?"),
        (start_program, "clone3?|v?fork"),
        (become_program, "execve"),
    ],
)
def test_a_work_that_starts_another_process_thread_or_program_is_refused(start, calls, tmp_path):
    """At the call that would start it the child is killed, and the trial raises and names it."""
    own = tmp_path / "pid"
    done = tmp_path / "done"

    def work(say: Say) -> None:
        own.write_text(str(os.getpid()))
        start()
        done.touch()

    refusal = f"^a traced work must be one process of one thread: it called ({calls})$"
    with pytest.raises(AssertionError, match=refusal):
        trace(work)
    with pytest.raises(ProcessLookupError):
        os.kill(int(own.read_text()), 0)
    assert not done.exists()


def test_signals_are_passed_on():
    """A signal reaches the work's handler, or ends the work if it has none."""

    def handles(say: Say) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: say(b"caught"))
        os.kill(os.getpid(), signal.SIGUSR1)

    def falls(say: Say) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    assert trace(handles)[0].said == b"caught"
    outcome = trace(falls)[0]
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGTERM)


def sleep(say: Say) -> None:
    time.sleep(3600)


def spin(say: Say) -> None:
    while True:
        pass


@pytest.mark.parametrize("work", [sleep, spin])
def test_a_trial_that_outlasts_its_limit_is_killed(work, monkeypatch):
    """A work that hangs is killed, and the trial raises instead of waiting for it."""
    monkeypatch.setattr(tracing, "LIMIT_S", 0.2)
    with pytest.raises(TimeoutError, match="outlasted"):
        trace(work)


def test_an_obstacle_is_named(monkeypatch):
    """If the kernel refuses to trace the child, its reason is returned."""

    def refuse(*_: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(tracing, "_ptrace", refuse)
    reason = obstacle.__wrapped__()
    assert reason == "ptrace is not permitted here: [Errno 1] Operation not permitted"


def free_descriptor() -> int:
    """The lowest one: any that is kept open takes its place."""
    free = os.dup(0)
    os.close(free)
    return free


def test_a_trial_leaves_other_children_and_descriptors_alone(replacement):
    """A trial ends, and waits for, its own child only, and keeps no descriptor open."""
    with subprocess.Popen(["sleep", "60"]) as other:
        processors = os.sched_getaffinity(0)
        before = free_descriptor()
        for n in range(1, len(Replacement.STEPS) + 2):
            replacement.reset()
            kill_before(replacement.work, n)
        assert free_descriptor() == before
        assert os.sched_getaffinity(0) == processors
        assert other.poll() is None
        other.kill()
    assert other.returncode == -signal.SIGKILL


needs_faults = needs(obstacle_to_faults())


@needs_faults
def test_a_call_that_is_struck_is_not_made_and_answers_the_error(tmp_path):
    """The work sees the error, the folder is not there, and the calls before and after are real."""

    def work(say: Say) -> None:
        for name in ("before", "struck", "after"):
            try:
                (tmp_path / name).mkdir()
            except OSError as error:
                say(errno.errorcode[error.errno].encode())

    fault = Fault(2, errno.ENOSPC, 1, lambda call: call.name == "mkdir")
    outcome, calls = fail(work, fault)
    assert (outcome.said, outcome.struck) == (b"ENOSPC", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "before"]
    struck = [call for call in calls if call.result == -errno.ENOSPC]
    assert [call.path for call in struck] == [str(tmp_path / "struck")]


@needs_faults
def test_a_fault_strikes_as_often_as_it_is_told(tmp_path):
    """Persistent faults repeat; Python retries an interrupted call until it succeeds."""

    def work(say: Say) -> None:
        fd = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"text")
        say(b"done")

    fault = Fault(1, errno.EINTR, 5, lambda call: str(call.path).endswith("/file"))
    outcome, _ = fail(work, fault)
    assert (outcome.said, outcome.struck) == (b"done", 5)
    assert (tmp_path / "file").read_bytes() == b"text"


@needs_faults
def test_a_short_write_takes_a_half(tmp_path):
    """The write is made, and returns that it took only the half."""

    def work(say: Say) -> None:
        fd = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
        say(b"%d" % os.write(fd, b"12345678"))

    fault = Fault(1, None, 1, lambda call: call.name == "write")
    outcome, _ = fail(work, fault)
    assert (outcome.said, outcome.struck) == (b"4", 1)
    assert (tmp_path / "file").read_bytes() == b"1234"
