"""Whether bubblewrap works on a host, and the remedy if it does not."""

import os
import stat
import subprocess

import pytest

from rekindle.errors import SandboxError
from rekindle.system.processes import launch_processes
from rekindle.system.sandbox import probe

pytestmark = pytest.mark.skipif(os.name != "posix", reason="bubblewrap exists for Linux only")
APPARMOR_SWITCH = "kernel.apparmor_restrict_unprivileged_userns"


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with its own programs and kernel settings; the result is a function to change them."""
    switches = {}
    monkeypatch.setattr(probe.sys, "platform", "linux")
    monkeypatch.setattr(probe, "_works", set())
    monkeypatch.setattr(probe, "_read_switch", lambda name: switches.get(name, ""))
    monkeypatch.setattr(
        probe.program_search,
        "find_executable",
        lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None,
    )

    def install(name, script="exit 0", **settings):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n{script}\n')
        (tmp_path / name).chmod(stat.S_IRWXU)
        switches.update(settings)

    install.calls = tmp_path / "calls"
    install.switches = switches
    return install


def test_a_missing_bubblewrap_is_to_be_installed(host):
    obstacle = probe.find_obstacle()
    assert "not installed" in obstacle.words
    assert "sudo apt install bubblewrap" in obstacle.hint
    with pytest.raises(SandboxError, match="not installed") as raised:
        probe.require_sandbox()
    assert "sandbox: off" in raised.value.hint


def test_another_system_has_no_bubblewrap(host, monkeypatch):
    host("bwrap")
    monkeypatch.setattr(probe.sys, "platform", "darwin")
    assert "Linux only" in probe.find_obstacle().words


@pytest.mark.parametrize(
    "message",
    [
        "bwrap: setting up uid map: Permission denied",
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
    ],
)
def test_apparmor_is_named_with_its_remedy(host, message):
    host("bwrap", f"echo '{message}' >&2; exit 1", **{APPARMOR_SWITCH: "1"})
    obstacle = probe.find_obstacle()
    assert obstacle.words.endswith(message.removeprefix("bwrap: "))
    assert "/etc/apparmor.d/bwrap" in obstacle.hint
    assert f"sudo sysctl -w {APPARMOR_SWITCH}=0" in obstacle.hint


def test_namespaces_that_are_off_are_named_with_their_setting(host):
    host("bwrap", "echo 'bwrap: No permissions' >&2; exit 1")
    host.switches["user.max_user_namespaces"] = "0"
    assert "sudo sysctl -w user.max_user_namespaces=15000" in probe.find_obstacle().hint


def test_any_other_failure_is_reported_in_its_own_words(host):
    host("bwrap", "echo 'bwrap: first line' >&2; echo second >&2; exit 1")
    obstacle = probe.find_obstacle()
    assert obstacle.words.endswith("first line second")
    assert "in a container" in obstacle.hint
    host("bwrap", "exit 3")
    assert probe.find_obstacle().words.endswith("exit code 3")


def test_a_program_that_is_not_executable_is_an_obstacle(host, tmp_path):
    (tmp_path / "bwrap").write_text("not a program")
    assert "Permission denied" in probe.find_obstacle().words


def test_a_probe_that_hangs_is_ended(host, monkeypatch):
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.1)
    host("bwrap", "exec sleep 600")
    assert "timed out" in probe.find_obstacle().words
    assert not launch_processes.UNRELATED_CHILDREN


def test_a_host_is_probed_once_if_it_works_and_again_if_it_did_not(host, tmp_path):
    host("bwrap", "exit 1")
    for _ in range(2):
        with pytest.raises(SandboxError):
            probe.require_sandbox()
    host("bwrap")
    for _ in range(2):
        assert probe.require_sandbox() == str(tmp_path / "bwrap")
    assert len(host.calls.read_text().splitlines()) == 3


def test_limits_need_prlimit(host, tmp_path):
    assert probe.find_limits(None, None) == ()
    with pytest.raises(SandboxError, match="need prlimit"):
        probe.find_limits(1024, None)
    host("prlimit")
    expected = (str(tmp_path / "prlimit"), "--data=1024", "--nproc=5", "--")
    assert probe.find_limits(1024, 5) == expected


def test_a_kernel_setting_is_read_and_a_missing_one_is_empty():
    read = probe._read_switch.__wrapped__
    expected = subprocess.run(
        ["cat", "/proc/sys/kernel/ostype"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert read("kernel.ostype") == expected
    assert read("kernel.missing_setting") == ""
