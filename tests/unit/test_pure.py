"""`just unit` runs pure tests alone, and a pure test that starts a process fails."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

import pure


def spawn() -> None:
    os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {})


STARTS = {
    "a program": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "a shell": lambda: os.system(":"),  # noqa: S605 - refused before it starts
    "a spawn": spawn,
    "a fork": os.fork,
    "an exec": lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),  # noqa: S606 - refused
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_a_pure_test_cannot_start_a_process(start):
    with pytest.raises(pure.ProcessStartedError), pure.refuse_processes():
        start()


def test_a_pure_test_that_hides_the_error_fails_as_well():
    hidden = contextlib.suppress(AssertionError)
    with pytest.raises(pure.ProcessStartedError), pure.refuse_processes(), hidden:
        subprocess.run([sys.executable, "-c", ""], check=True)


def test_other_tests_start_processes():
    with pure.refuse_processes():
        pass
    assert subprocess.run([sys.executable, "-c", "exit(3)"], check=False).returncode == 3


def test_just_unit_selects_the_pure_layers_without_their_heavy_tests():
    recipe = re.search(r"\nunit \*args:\n    (.+)\n", (pure.ROOT / "justfile").read_text())
    assert recipe
    assert recipe[1].endswith("-m pure {{args}} tests/unit")
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "pure", "tests/unit"]
    ended = subprocess.run(argv, cwd=pure.ROOT, capture_output=True, text=True, check=True)
    names = [line for line in ended.stdout.splitlines() if "::" in line]
    files = [name.partition("::")[0].split("/") for name in names]
    layers = {folder for _, _, folder, *below in files if below}
    assert layers == pure.read_pure_layers() >= {"documents", "policy"}
    assert len(names) > 3_000
    assert not re.search("test_ten_thousand_histories|test_careless|systemd_takes", ended.stdout)
