"""A program on a terminal of its own: it has the person's, whatever happens, and gives it back."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from desk import ALONE, SHELL, Desk

SUPERVISOR = """
import contextlib, fcntl, os, sys
from rekindle.errors import RekindleError
from rekindle.system.processes.child_processes import Interruption
from rekindle.system.terminal.pty_process import TerminalProcesses

how, *argv = sys.argv[1:]
lock = os.open("lock", os.O_CREAT | os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
try:
    child = TerminalProcesses().start(argv, prompt="", environment=os.environ, folder=".")
except RekindleError as error:
    sys.exit(f"{type(error).__name__}: {error} ({error.hint})")
noticing = contextlib.nullcontext() if how == "deaf" else Interruption()
with noticing as interruption, contextlib.closing(child.follow(0.25)) as ticks:
    asked = 0
    for tick in ticks:
        assert tick is None
        if how == "failing" and os.path.exists("fail"):
            raise RuntimeError("as the test says")
        if interruption and interruption.count > asked:
            (child.kill if asked else child.ask_to_end)()
            asked += 1
print(f"[it ended with {child.code}: {child.errors[:40]!r}]", flush=True)
sys.exit(abs(child.code))
"""
AGENT = """
import os, select, signal, sys, termios, tty
os.set_blocking(2, True)
def say(*words):
    rest = (" ".join(map(str, words)) + "\\n").encode()
    while rest:
        rest = rest[os.write(1, rest):]
def say_size():
    size = os.get_terminal_size(0)
    say(f"<{size.columns}x{size.lines}>")
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
for number in (signal.SIGWINCH, signal.SIGINT, signal.SIGQUIT, signal.SIGCONT, signal.SIGTERM):
    signal.signal(number, lambda *_: None)
deaf = False
say("pid", os.getpid(), "of", os.getpgrp(), "in front", os.tcgetpgrp(0))
say_size()
while True:
    ready, _, _ = select.select([0, reader], [], [])
    if reader in ready:
        for number in os.read(reader, 100):
            say(f"<{signal.Signals(number).name}>")
            if number == signal.SIGWINCH:
                say_size()
            if number == signal.SIGTERM and not deaf:
                sys.exit(143)
    if 0 in ready:
        match os.read(0, 100).decode().split():
            case ["exit", code]:
                sys.exit(int(code))
            case ["die", number]:
                signal.signal(int(number), signal.SIG_DFL) if int(number) != 9 else None
                os.kill(os.getpid(), int(number))
            case ["deaf"]:
                deaf = True
                say("<deaf>")
            case ["flood", size]:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                say("x" * int(size), "<end>")
            case ["raw", count]:
                tty.setraw(0)
                say("<raw>")
                got = b""
                while len(got) < int(count):
                    got += os.read(0, 4096)
                say("<" + got[:300].hex() + ">", sum(got))
                sys.exit(0)
"""
CTRL_Z, CTRL_C, CTRL_BACKSLASH = b"\x1a", b"\x03", b"\x1c"


@pytest.fixture
def sit(tmp_path):
    """Sit down at a terminal in which a supervisor follows an agent."""
    with contextlib.ExitStack() as seats:

        def begin(code=AGENT, *, how="", shell=SHELL, argv=None, size=(80, 24)):
            agent = argv or [sys.executable, "-I", "-S", "-c", code]
            desk = Desk(
                [sys.executable, "-c", SUPERVISOR, how, *agent],
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm"},
                cwd=tmp_path,
                shell=shell,
                size=size,
            )
            return seats.enter_context(desk)

        yield begin


def gone(pid, timeout=20):
    """Return whether it ends in time, by polling, because no event reports it to a stranger."""
    deadline = time.monotonic() + timeout
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _lives(pid)


def _lives(pid):
    asked = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


def pid_of(desk):
    """The program's own number, which it says first."""
    desk.wait_for(" of ")
    return int(desk.shown.partition(b"pid ")[2].split()[0])


def test_it_is_in_the_foreground_of_a_terminal_as_large_as_ours(sit):
    """This holds from the start: it may draw before any resize."""
    desk = sit(size=(101, 37))
    pid = pid_of(desk)
    desk.wait_for(f"{pid} in front {pid}\r\n<101x37>")
    assert desk.is_raw
    desk.type("exit 3\r")
    assert desk.hear() == {"code": 3}
    assert desk.modes == desk.modes_before


def test_a_new_size_is_passed_on(sit):
    """The program is told, as by its own terminal."""
    desk = sit()
    desk.wait_for("<80x24>")
    for columns, lines in ((120, 50), (33, 9)):
        desk.resize(columns, lines)
        desk.wait_for(f"<SIGWINCH>\r\n<{columns}x{lines}>")


def test_keys_that_make_signals_make_them_for_the_program_alone(sit):
    """We keep running without a stop request: typed keys are meant for the program."""
    desk = sit()
    desk.wait_for("<80x24>")
    desk.type(CTRL_C)
    desk.wait_for("<SIGINT>")
    desk.type(CTRL_BACKSLASH)
    desk.wait_for("<SIGQUIT>")
    desk.type("exit 0\r")
    assert desk.hear() == {"code": 0}
    assert b"<SIGTERM>" not in desk.shown


def test_every_byte_arrives(sit):
    """The program reads byte by byte, with the keys that have a meaning elsewhere."""
    every = bytes(range(256))
    desk = sit()
    desk.wait_for("<80x24>")
    desk.type("raw 256\r")
    desk.wait_for("<raw>")
    desk.type(every)
    desk.wait_for(f"<{every.hex()}>")
    assert desk.hear() == {"code": 0}


def test_a_large_paste_arrives_whole(sit):
    """This holds however slowly it is read."""
    desk = sit()
    desk.wait_for("<80x24>")
    desk.type("raw 300000\r")
    desk.wait_for("<raw>")
    desk.type(b"ab" * 150_000)
    desk.wait_for(f"> {sum(b'ab') * 150_000}")
    assert desk.hear() == {"code": 0}


def test_what_it_says_last_is_shown(sit):
    """Half a megabyte, right before it ends."""
    desk = sit('import sys; sys.stdout.write("x" * 500_000 + "<the end>")')
    desk.wait_for("<the end>")
    assert desk.hear() == {"code": 0}
    assert desk.shown.count(b"x") >= 500_000


def test_ctrl_z_stops_it_and_us_and_fg_brings_both_back(sit):
    """The shell gets its terminal as it was; the program finds its own as it left it."""
    desk = sit()
    desk.wait_for("<80x24>")
    for round_ in range(3):
        desk.type(CTRL_Z)
        assert desk.hear() == {"stopped": signal.SIGTSTP}
        assert desk.modes == desk.modes_before
        desk.resize(90 + round_, 30)
        desk.foreground()
        desk.wait_for(f"<{90 + round_}x30>")
        assert desk.is_raw
    desk.type("exit 4\r")
    assert desk.hear() == {"code": 4}
    assert desk.modes == desk.modes_before


def test_ctrl_z_stops_nothing_if_no_shell_could_continue_us(sit):
    """As the only program of a window we would stay stopped for ever."""
    desk = sit(shell=ALONE)
    desk.wait_for("<80x24>")
    desk.type(CTRL_Z)
    desk.wait_for("<SIGCONT>")
    assert desk.is_raw
    desk.type("exit 5\r")
    desk.wait_for("[it ended with 5")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP])
def test_one_that_is_killed_leaves_the_terminal_as_it_was(sit, number):
    """Its cursor, its screen and its mouse among what it could not take back itself."""
    desk = sit()
    desk.wait_for("<80x24>")
    desk.type(f"die {int(number)}\r")
    assert desk.hear() == {"code": int(number)}
    assert desk.modes == desk.modes_before
    assert f"[it ended with {-number}".encode() in desk.shown
    assert b"\x1b[?25h" in desk.shown


def test_a_failure_of_ours_leaves_the_terminal_as_it_was(sit, tmp_path):
    """The program is gone too: its caller has given it up."""
    desk = sit(how="failing")
    pid = pid_of(desk)
    desk.wait_for("<80x24>")
    (tmp_path / "fail").touch()
    assert desk.hear() == {"code": 1}
    assert desk.modes == desk.modes_before
    assert b"as the test says\r\n" in desk.shown
    assert gone(pid)


@pytest.mark.parametrize("how", ["", "deaf"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end_we_ask_the_program(sit, number, how):
    """It must not leave the terminal behind, whether or not another handler sees the signal."""
    desk = sit(how=how)
    desk.wait_for("<80x24>")
    os.kill(desk.job, number)
    desk.wait_for("<SIGTERM>")
    assert desk.hear() == {"code": 143}
    assert desk.modes == desk.modes_before


def test_a_program_that_will_not_end_is_killed(sit):
    """The rest of its group is killed too."""
    desk = sit()
    desk.wait_for("<80x24>")
    desk.type("deaf\r")
    desk.wait_for("<deaf>")
    os.kill(desk.job, signal.SIGTERM)
    desk.wait_for("<SIGTERM>")
    os.kill(desk.job, signal.SIGTERM)
    assert desk.hear() == {"code": 9}
    assert desk.modes == desk.modes_before


def test_a_stopped_program_gets_the_request_to_end(sit):
    """A request while all are stopped arrives as soon as we continue."""
    desk = sit()
    desk.wait_for("<80x24>")
    desk.type(CTRL_Z)
    assert desk.hear() == {"stopped": signal.SIGTSTP}
    os.kill(desk.job, signal.SIGTERM)
    desk.foreground()
    desk.wait_for("<SIGTERM>")
    assert desk.hear() == {"code": 143}


def test_a_screen_that_shows_nothing_does_not_block(sit):
    """On a hanging connection the program waits, and can still be ended."""
    desk = sit()
    pid = pid_of(desk)
    desk.wait_for("<80x24>")
    desk.type("flood 3000000\r")
    desk.wait_for("xxxx")
    os.kill(desk.job, signal.SIGTERM)
    assert gone(pid)  # without a reader
    assert b"<end>" not in desk.shown


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells a child")
def test_it_ends_when_we_are_killed(sit, tmp_path):
    """No process keeps our locks: the companion process has none of our files open."""
    desk = sit()
    pid = pid_of(desk)
    desk.wait_for("<80x24>")
    leader = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    assert {one.name for one in Path(f"/proc/{leader}/fd").iterdir()} == {"0", "1", "2"}
    os.kill(desk.job, signal.SIGKILL)
    assert desk.hear() == {"code": -9}
    assert gone(pid)
    with (tmp_path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_text_after_all_drawing_gives_the_reason_of_the_end(sit):
    """Everything drawn before is a conversation, which does not explain the end."""
    drawn = r"\x1b[3;1Hrate limits are fun\x1b[K\x1b[?25h"
    said = r"\x1b[31mno such session\x1b[0m\n"
    desk = sit(f'import sys; sys.stderr.write("{drawn}{said}"); sys.exit(1)')
    desk.wait_for(r"[it ended with 1: 'no such session\n']")


def test_a_program_that_is_not_there_is_named(sit):
    """The error comes before the terminal is given away."""
    desk = sit(argv=["no-such-program"])
    desk.wait_for("ProgramMissingError: no-such-program could not be started")
    assert desk.hear() == {"code": 1}
    assert desk.modes == desk.modes_before


def test_without_a_terminal_it_is_refused(tmp_path):
    """The error names a program that provides a terminal."""
    ended = subprocess.run(
        [sys.executable, "-c", SUPERVISOR, "", "true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 1
    assert "AgentError: an agent with `mode: stay` needs a terminal" in ended.stderr
    assert "tmux" in ended.stderr
