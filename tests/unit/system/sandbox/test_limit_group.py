"""A control group limits a launch, ends with it, and is swept if its supervisor was killed."""

import json
import os
import subprocess
import sys

import pytest

import prerequisites
from rekindle.errors import SandboxError
from rekindle.system.processes import control_group
from rekindle.system.sandbox import limit_group

LIMITS = {"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "9"}


@pytest.fixture
def hierarchy(tmp_path, monkeypatch):
    """Two plain folders that stand for our own group and for the delegated group above it."""
    own = tmp_path / "supervisors"
    own.mkdir()
    for group, processes in ((tmp_path, ""), (own, "7\n")):
        (group / "cgroup.controllers").write_text("cpu memory pids\n")
        (group / "cgroup.subtree_control").write_text("")
        (group / "cgroup.procs").write_text(processes)
    monkeypatch.setattr(control_group, "find_delegated", lambda: (own, tmp_path))
    return tmp_path


def prepare(parent, *names):
    """Create a group's files, as the kernel does."""
    group = parent / "rekindle-m1"
    group.mkdir()
    for name in names:
        (group / name).touch()
    return group


def test_a_group_with_processes_offers_no_controllers(hierarchy):
    assert limit_group.list_controllers() == {"cpu", "memory", "pids"}
    (hierarchy / "cgroup.procs").write_text("1\n")
    assert limit_group.list_controllers() == set()


def test_enabled_controllers_are_offered_beside_processes(hierarchy):
    (hierarchy / "cgroup.procs").write_text("1\n")
    (hierarchy / "cgroup.subtree_control").write_text("memory\n")
    assert limit_group.list_controllers() == {"memory"}


def test_nothing_is_offered_without_a_delegated_group(monkeypatch):
    monkeypatch.setattr(control_group, "find_delegated", lambda: ())
    assert limit_group.list_controllers() == set()
    with pytest.raises(SandboxError, match="no control group is delegated"):
        limit_group.make_limit_group("m1", LIMITS)


def test_the_limits_are_set_outside_the_group_of_the_launch(hierarchy):
    group = prepare(hierarchy, *LIMITS)
    made = limit_group.make_limit_group("m1", LIMITS)
    assert {name: (group / name).read_text() for name in LIMITS} == LIMITS
    assert (hierarchy / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert str(group / "program/cgroup.procs") in made.wrap(["true"])


def test_a_kernel_without_swap_can_limit_memory(hierarchy):
    group = prepare(hierarchy, "memory.max", "pids.max")
    limit_group.make_limit_group("m1", LIMITS)
    assert not (group / "memory.swap.max").exists()


def test_a_missing_limit_refuses_the_launch(hierarchy):
    prepare(hierarchy, "memory.max")
    with pytest.raises(SandboxError, match=r"pids\.max"):
        limit_group.make_limit_group("m1", LIMITS)


def test_a_launch_that_cannot_enter_its_group_does_not_start(hierarchy):
    group = prepare(hierarchy, *LIMITS)
    made = limit_group.make_limit_group("m1", LIMITS)
    (group / "program/cgroup.procs").mkdir()
    ended = subprocess.run(made.wrap(["echo", "ran"]), capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert ended.stdout == ""


def test_the_environment_of_a_launch_runs_no_code_outside_the_sandbox(hierarchy, tmp_path):
    """Bash, which is the shell of some systems, runs functions from its environment."""
    if os.geteuid() != 0:
        prerequisites.refuse("only root can replace the shell")
    group = prepare(hierarchy, *LIMITS)
    made = limit_group.make_limit_group("m1", LIMITS)
    (group / "program/cgroup.procs").touch()
    function = f'BASH_FUNC_echo%%=() {{ touch {tmp_path}/mark; builtin echo "$@"; }}'
    with_bash = ["sh", "-c", 'mount --bind /bin/bash /bin/sh && exec "$@"', "sh"]
    argv = ["unshare", "--mount", *with_bash, "env", function, *made.wrap(["/bin/true"])]
    ended = subprocess.run(argv, check=False)
    assert ended.returncode == 0
    assert (group / "program/cgroup.procs").read_text().strip() == "0"
    assert not (tmp_path / "mark").exists()


# A real cgroup v2, mounted for this program alone. Its limits are those of the controllers that
# this kernel offers there: on a host that mounts the others as cgroup v1, only huge pages.
PROGRAM = """
import json, os, subprocess, sys, time
from pathlib import Path
from rekindle.system.sandbox import limit_group

SUPERVISOR = '''
import json, subprocess, sys, time
from rekindle.system.sandbox import limit_group
group = limit_group.make_limit_group("m2", json.loads(sys.argv[1]))
print("made", flush=True)
time.sleep(600)
'''

top = Path(sys.argv[1])
subprocess.run(["mount", "-t", "cgroup2", "none", top], check=True)
offered = set((top / "cgroup.controllers").read_text().split())
if {"memory", "pids", "cpu"} <= offered:
    files = {"memory.max": "1073741824", "pids.max": "64", "cpu.max": "150000 100000"}
else:
    files = {"hugetlb.2MB.max": "2097152"}
names = {name.partition(".")[0] for name in files}
added = names - set((top / "cgroup.subtree_control").read_text().split())
(top / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in added))
group = top / f"rekindle-test-{time.time_ns()}"
own = group / "supervisors"
own.mkdir(parents=True)
os.setxattr(group, "trusted.delegate", b"1")
(own / "cgroup.procs").write_text("0")
found = {"controllers": names <= limit_group.list_controllers(), "wanted": files}

made = limit_group.make_limit_group("m1", files)
child = subprocess.Popen(made.wrap(["sleep", "600"]))
procs = group / "rekindle-m1/program/cgroup.procs"
deadline = time.monotonic() + 20
while procs.read_text().split() != [str(child.pid)]:
    assert time.monotonic() < deadline, "not in time"
    time.sleep(0.01)
found["limits"] = {name: (group / "rekindle-m1" / name).read_text().strip() for name in files}
limit_group.sweep_leftovers(group)
found["swept while in use"] = not procs.exists()

supervisor = subprocess.Popen(
    [sys.executable, "-c", SUPERVISOR, json.dumps(files)], stdout=subprocess.PIPE, text=True
)
supervisor.stdout.readline()
limit_group.sweep_leftovers(group)
found["empty group of a living supervisor"] = (group / "rekindle-m2").exists()
supervisor.kill()
supervisor.wait()
limit_group.sweep_leftovers(group)
found["group of a killed supervisor"] = (group / "rekindle-m2").exists()

made.remove()
found["child"] = child.wait(20)
found["left"] = sorted(path.name for path in group.iterdir() if path.is_dir())
(top / "cgroup.procs").write_text("0")
own.rmdir()
group.rmdir()
if added:
    (top / "cgroup.subtree_control").write_text(" ".join(f"-{name}" for name in added))
print(json.dumps(found))
"""


def find_cgroup_obstacle() -> str:
    """Return why cgroup v2 with a limit cannot be used here; empty if it can."""
    if os.geteuid() != 0:
        return "only the superuser mounts a cgroup v2"
    script = "mount -t cgroup2 none /mnt && grep -E 'hugetlb|memory.*pids' /mnt/cgroup.controllers"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    return f"no cgroup v2 here: {tried.stderr.strip()}" if tried.returncode else ""


def test_a_real_group_limits_a_launch_and_goes_with_it(place, tmp_path):
    prerequisites.require(find_cgroup_obstacle())
    (tmp_path / "cgroup").mkdir()
    started = place.start(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "cgroup")],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
    )
    assert started.wait(60) == 0, started.err
    found = json.loads(started.out)
    assert found["controllers"]
    assert found["limits"] == found["wanted"]
    assert not found["swept while in use"]
    assert found["empty group of a living supervisor"]
    assert not found["group of a killed supervisor"]
    assert found["child"] == -9
    assert found["left"] == ["supervisors"]
