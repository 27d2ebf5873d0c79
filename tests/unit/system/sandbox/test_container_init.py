"""The first process of a container: it is as the program was, and explains reached limits."""

import os
import signal
import subprocess
import sys

import pytest

from rekindle.system.sandbox import container_init, container_launcher

READER = "import os; print(sorted(name for name in os.environ if name[0] == 'K'))"


def run(limits, *program, **environment):
    """Run a program as a container does, without a container."""
    first = [sys.executable, "-I", "-S", container_init.__file__, str(limits), *program]
    argv = [sys.executable, "-I", "-S", container_launcher.__file__, *first]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def test_the_environment_reaches_the_program_without_a_file(tmp_path):
    done = run(tmp_path, sys.executable, "-I", "-c", READER, KEY="secret=1", K2="")
    assert (done.returncode, done.stdout) == (0, "['K2', 'KEY']\n")


def test_the_runtime_does_not_get_the_environment_of_the_program():
    """For example, it would send its state to NOTIFY_SOCKET."""
    argv = [sys.executable, "-I", "-S", container_launcher.__file__, "/usr/bin/env"]
    given = {"NOTIFY_SOCKET": "/a", "LISTEN_FDS": "3", "PATH": "/bin", "REKINDLE_LAUNCH": "m1"}
    done = subprocess.run(argv, env=given, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["PATH=/bin", "REKINDLE_LAUNCH=m1"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)],
)
def test_it_exits_like_the_program(tmp_path, code, expected):
    assert run(tmp_path, sys.executable, "-I", "-c", code).returncode == expected


def test_a_missing_program_is_an_error(tmp_path):
    assert run(tmp_path, "/missing").returncode == 127


def test_signals_reach_the_program(tmp_path):
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print(os.getppid(), flush=True)\n"
        "signal.pause()\n"
    )
    first = [sys.executable, "-I", "-S", container_init.__file__, str(tmp_path)]
    argv = [sys.executable, "-I", "-S", container_launcher.__file__, *first]
    with subprocess.Popen(
        [*argv, sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, text=True
    ) as child:
        assert int(child.stdout.readline()) == child.pid
        os.kill(child.pid, signal.SIGTERM)
        assert child.wait(30) == 5


def test_a_reached_limit_is_explained_if_the_program_failed(tmp_path):
    (tmp_path / "memory").write_text("under_oom 0\noom_kill 1\n")
    (tmp_path / "processes").write_text("max 0\n")
    failed = run(tmp_path, sys.executable, "-I", "-c", "import os; os.kill(os.getpid(), 9)")
    assert failed.returncode == 1, "with 137, the supervisor would not report the reason"
    assert failed.stderr == (
        "the agent reached the memory limit of its sandbox, so the kernel ended a process\n"
    )
    (tmp_path / "processes").write_text("max 3\n")
    assert len(container_init.list_reached(str(tmp_path))) == 2
    (tmp_path / "memory").write_text("oom_kill 0\n")
    assert container_init.list_reached(str(tmp_path)) == [
        "the agent reached the limit on processes of its sandbox"
    ]
    assert run(tmp_path, sys.executable, "-I", "-c", "").stderr == ""
