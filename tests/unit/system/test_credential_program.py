"""Running a credential helper."""

import os
import time

import pytest

from rekindle.errors import CredentialsError
from rekindle.system import credential_program
from rekindle.system.credential_program import run_helper


@pytest.fixture
def helper(tmp_path):
    def make(script: str) -> str:
        program = tmp_path / "helper"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return make


def test_it_reads_the_request_and_prints_the_credentials(helper):
    assert run_helper(helper('cat; echo "$REGION"'), b"{}\n", {"REGION": "eu"}) == b"{}\neu\n"


def test_it_need_not_read_the_request(helper):
    assert run_helper(helper("exec </dev/null; echo done"), b"x" * 100_000, {}) == b"done\n"


def test_its_messages_are_shown_but_not_its_output(helper, capfd):
    with pytest.raises(CredentialsError, match="failed with exit code 3"):
        run_helper(helper("echo sk-secret; echo the vault is sealed >&2; exit 3"), b"", {})
    told = capfd.readouterr()
    assert told.err == "the vault is sealed\n"
    assert told.out == ""


@pytest.mark.parametrize(
    "script",
    ["sleep 600", "echo '{}'; exec sleep 600 >/dev/null", "sleep 600 & echo '{}'"],
)
def test_a_helper_that_hangs_is_ended_with_all_its_processes(helper, tmp_path, monkeypatch, script):
    monkeypatch.setattr(credential_program, "CREDENTIAL_SECONDS", 0.3)
    mark = tmp_path / "pipe"
    os.mkfifo(mark)
    reader = os.open(mark, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(CredentialsError, match="took longer than"):
        run_helper(helper(f"exec 9>{mark}; {script}"), b"", {"PATH": "/usr/bin:/bin"})
    os.set_blocking(reader, True)
    began = time.monotonic()
    assert os.read(reader, 1) == b""  # returns only when no process holds the pipe
    assert time.monotonic() - began < 60
    os.close(reader)


def test_endless_output_is_refused(helper):
    with pytest.raises(CredentialsError, match="printed more than 65,536 bytes"):
        run_helper(helper("yes"), b"", {"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("path", ["/missing/helper", "/etc", __file__])
def test_a_program_that_cannot_be_started_is_named(path):
    with pytest.raises(CredentialsError, match="cannot be started") as refused:
        run_helper(path, b"", {})
    assert path in str(refused.value)
    assert "executable" in refused.value.hint
