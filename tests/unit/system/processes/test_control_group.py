"""A launch's own control group finds what has left its parent, session and environment."""

import json
import os
import subprocess
import sys

import pytest

import prerequisites
from rekindle.system.processes import control_group

# A real cgroup v2, mounted for this program alone, with a group that is delegated to it. The
# supervisor is a process of its own that is killed: nothing but the group tells whose orphan it is.
PROGRAM = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
from rekindle.system.processes import (
    process_api,
    launch_processes,
)
from rekindle.system.processes.child_processes import HostProcesses

SUPERVISOR = '''
import sys
from rekindle.system.processes.child_processes import HostProcesses
orphan = "env -i setsid sh -c 'echo $$ >orphan; exec sleep 600' >/dev/null 2>&1 &"
child = HostProcesses().start(
    ["sh", "-c", f"{orphan} exec sleep 300"], prompt="",
    environment={"PATH": sys.argv[1], "REKINDLE_LAUNCH": "m1"}, folder=".",
)
for _ in child.follow(0.05):
    pass
'''

subprocess.run(["mount", "-t", "cgroup2", "none", sys.argv[1]], check=True)
top = Path(sys.argv[1])
group = top / f"rekindle-test-{time.time_ns()}"
group.mkdir()
if sys.argv[2] == "delegated":
    os.setxattr(group, "trusted.delegate", b"1")
(group / "cgroup.procs").write_text("0")
at = {"boot": launch_processes.identify_boot(), "uptime": launch_processes.read_uptime()}
supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, os.environ["PATH"]])

def until(is_so):
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)

until(lambda: Path("orphan").exists() and Path("orphan").read_text().strip())
orphan = int(Path("orphan").read_text())
until(lambda: process_api.here.command(orphan) == "sleep 600")
supervisor.kill()
supervisor.wait()
# The agent ends with its supervisor; until then the orphan is found below it.
until(lambda: process_api.here.command(process_api.here.parent(orphan)) != "sleep 300")
swept = HostProcesses().end_launch_processes("m1", **at, patience=0.1)
lives = orphan in process_api.here.table()
groups = [path.name for path in group.glob("rekindle-*")]
if lives:
    os.kill(orphan, signal.SIGKILL)
(top / "cgroup.procs").write_text("0")

def is_removed():
    try:
        for path in (*group.glob("rekindle-*"), group):
            path.rmdir()
    except OSError:
        return False
    return True

until(is_removed)
print(json.dumps({"lives": lives, "commands": swept.commands, "groups": groups}))
"""


def _obstacle() -> str:
    """Return why no control group can be made here; empty if one can."""
    if os.geteuid() != 0:
        return "only the superuser mounts a cgroup v2"
    tried = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t cgroup2 none /mnt && rmdir "$(mktemp -d /mnt/XXXX)"',
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no cgroup v2 here: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.mark.parametrize("how", ["delegated", "not delegated"])
def test_an_orphan_of_a_killed_supervisor_is_found_by_its_group(place, tmp_path, how):
    """It has no mark, no parent of ours and no record. Without a delegated group it lives on."""
    prerequisites.require(_obstacle())
    (tmp_path / "cgroup").mkdir()
    started = place.start(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "cgroup"), how],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
    )
    assert started.wait(60) == 0, started.err
    found = json.loads(started.out)
    is_found = "sleep 600" in found["commands"]
    if how == "delegated":
        assert (is_found, found["lives"], found["groups"]) == (True, False, ["rekindle-m1"])
    else:
        assert (is_found, found["lives"], found["groups"]) == (False, True, [])


@pytest.mark.parametrize(
    ("listed", "is_held"),
    [
        (b"1:cpu:/x\n0::/user.slice/a.service/rekindle-m1\n", True),
        (b"0::/user.slice/a.service/rekindle-m1/below\n", True),
        (b"0::/user.slice/a.service/rekindle-m12\n", False),
        (b"1:name=systemd:/rekindle-m1\n0::/\n", False),
        (b"", False),
    ],
)
def test_a_group_is_told_by_its_whole_name(listed, is_held):
    assert control_group.is_in_group(listed, "m1") == is_held
