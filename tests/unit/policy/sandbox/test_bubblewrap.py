"""The command line of bubblewrap."""

import pytest

from rekindle.policy.sandbox.bubblewrap import (
    render_command,
    render_limits,
    render_probe,
)
from rekindle.policy.sandbox.mounts import Mount
from rekindle.policy.sandbox.sandbox_command import SandboxCommand

MOUNTS = (
    Mount("read", "/usr"),
    Mount("mask", "/tmp"),  # noqa: S108 - only a word
    Mount("write", "/w"),
    Mount("close", "/"),
)


def render(**more):
    sandbox = SandboxCommand(program="/bin/bwrap", mounts=MOUNTS, folder="/w", **more)
    return render_command(sandbox, ["claude", "-p"])


def test_mounts_come_in_order_and_the_program_last():
    words = render(links={"/bin": "usr/bin"})
    line = " ".join(words)
    assert words[0] == "/bin/bwrap"
    assert "--symlink usr/bin /bin --proc /proc --ro-bind-try /proc/sys /proc/sys" in line
    assert "--dev /dev --ro-bind /usr /usr --tmpfs /tmp" in line
    assert line.endswith("--tmpfs /tmp --bind /w /w --remount-ro / --chdir /w -- claude -p")


@pytest.mark.parametrize(
    ("option", "more", "is_given"),
    [
        ("--die-with-parent", {}, True),
        ("--cap-drop", {}, True),
        ("/proc/sysrq-trigger", {}, True),
        ("--unshare-pid", {}, True),
        ("--new-session", {}, True),
        ("--new-session", {"is_terminal": True}, False),
        ("--unshare-net", {}, True),
        ("--unshare-net", {"has_network": True}, False),
    ],
)
def test_options(option, more, is_given):
    assert (option in render(**more)) is is_given


def test_folders_in_memory_have_a_size():
    line = " ".join(render(memory=1024))
    assert "--dev /dev --size 1024 --tmpfs /dev/shm --remount-ro /dev --ro-bind /usr" in line
    assert "--size 1024 --tmpfs /tmp" in line


def test_limits_apply_to_the_program_inside():
    limits = render_limits("/bin/prlimit", 1024, 5)
    assert limits == ("/bin/prlimit", "--data=1024", "--nproc=5", "--")
    assert render(limits=limits)[-7:] == ["--", *limits, "claude", "-p"]
    assert render_limits("/bin/prlimit", None, 5) == ("/bin/prlimit", "--nproc=5", "--")
    assert render_limits("/bin/prlimit", None, None) == ()


def test_the_probe_needs_all_that_a_sandbox_needs():
    words = render_probe("/bin/bwrap")
    needed = {word for word in render() if word.startswith("--unshare")} | {"--proc", "--dev"}
    assert needed <= set(words)
    assert words[-2:] == ["--", "true"]
