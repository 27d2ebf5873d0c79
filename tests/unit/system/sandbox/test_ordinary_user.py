"""Both kinds of sandbox work for an ordinary user, whose processes they limit.

Root's processes are not limited by RLIMIT_NPROC, and tests usually run as root.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import prerequisites
from fleet import attacks

USER = "12345"
LIMIT = 40
AS_USER = f"""\
set -e
mount -t tmpfs -o mode=1777 none /var/tmp  # the user's state
# Python may be in root's home, which the user cannot enter.
mkdir /var/tmp/python
mount --bind "$1" /var/tmp/python
case "$1" in
~root/*) mount -t tmpfs -o mode=755 none ~root; mkdir -p "$1"; mount --bind /var/tmp/python "$1";;
esac
# crun refuses to start where both versions of control groups are mounted.
umount /sys/fs/cgroup/unified 2>/dev/null || true
shift
exec setpriv --reuid {USER} --regid {USER} --clear-groups -- "$@"
"""
PROGRAM = """\
import json, os, subprocess, sys
from contextlib import ExitStack
from rekindle.policy.sandbox.mounts import Mount
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.system.sandbox import containments, host_paths

kind, folder, attack, name, limits = sys.argv[1:]
containment = containments.find_containment(is_container=kind == "container")
system, links = host_paths.find_system()
shown = dict.fromkeys((*system, *host_paths.find_runtime()))
mounts = [Mount("mask", "/tmp"), *(Mount("read", one) for one in shown), Mount("write", folder)]
# Some runtimes mount files differently from folders.
mounts += [Mount("read", attack), Mount("hide", "/etc/passwd")]
view = SandboxCommand(
    program=containment.program, mounts=(*mounts, Mount("close", "/")), links=links, folder=folder
)
argv = [sys.executable, "-I", attack, name]
with ExitStack() as resources:
    profile = SandboxProfile(**json.loads(limits))
    given = dict(profile=profile, environment={}, resources=resources)
    command = containment.enclose(view, argv, **given)
    done = subprocess.run(command, env={"PATH": os.defpath}, capture_output=True, text=True)
print(json.dumps([os.getuid(), done.returncode, done.stderr]))
"""


@pytest.fixture
def folder():
    """Create a folder of the user, with a copy of the attack that the user can read."""
    if os.geteuid() != 0:
        prerequisites.refuse("only root can become another user")
    # pytest closes the parents of its own temporary folders to other users.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        (own := place / "own").mkdir()
        os.chown(own, int(USER), int(USER))
        (own / "attacks.py").write_text(Path(attacks.__file__).read_text())
        yield own


def attack_as_user(folder, kind, attack, **limits):
    """Attack the host from a sandbox, and return the result, the exit code and stderr."""
    (folder / "result.json").unlink(missing_ok=True)
    words = [sys.executable, "-c", PROGRAM, kind, str(folder), str(folder / "attacks.py")]
    argv = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        AS_USER,
        "sh",
        sys.base_prefix,
        *words,
        attack,
        json.dumps(limits),
    ]
    done = subprocess.run(
        argv, cwd="/", env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    user, code, errors = json.loads(done.stdout)
    assert user == int(USER)
    assert (folder / "result.json").exists(), errors
    return json.loads((folder / "result.json").read_text()), code, errors


@pytest.mark.parametrize("kind", ["on", "container"])
def test_an_agent_that_forks_without_end_fails(folder, kind):
    # crun complains about a user without a name, but works.
    assert attack_as_user(folder, kind, "fork_without_end")[:2] == (attacks.FORKS, 0)
    forked, code, errors = attack_as_user(folder, kind, "fork_without_end", processes=LIMIT)
    assert 0 < forked < LIMIT
    assert code == 1
    assert "BlockingIOError" in errors


@pytest.mark.parametrize("kind", ["on", "container"])
def test_files_in_memory_are_limited_without_a_control_group(folder, kind):
    limit = attacks.FILLED_MEBIBYTES // 2
    filled, _, errors = attack_as_user(folder, kind, "fill_folders", memory=limit << 20)
    assert 0 < filled["/tmp"] <= limit, errors  # noqa: S108 - that of the sandbox
    assert 0 < filled["/dev/shm"] <= limit  # noqa: S108
    assert filled["/dev"] <= limit
    filled, _, errors = attack_as_user(folder, kind, "fill_folders")
    assert filled["/tmp"] == attacks.FILLED_MEBIBYTES, errors  # noqa: S108
