"""Processes in the namespace of a sandbox, seen from outside."""

import shutil
import subprocess
import sys

import prerequisites
from rekindle.system.processes import launch_processes, linux_processes

INNER = """\
import os, sys
start = open("/proc/self/stat").read().rpartition(")")[2].split()[19]
boot = open("/proc/sys/kernel/random/boot_id").read(8)
print(os.getpid(), start, boot, os.readlink("/proc/self/ns/pid")[5:-1], sep=".", flush=True)
sys.stdin.read()
"""


@prerequisites.needs(None if shutil.which("bwrap") else "bwrap is not installed")
def test_a_process_in_an_inner_namespace_is_alive_until_it_exits():
    """A person's session in a sandbox must not count as running for ever."""
    enclosed = ["bwrap", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"]
    with subprocess.Popen(
        [*enclosed, sys.executable, "-I", "-c", INNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        process = child.stdout.readline().strip()
        pid, start, _, namespace = process.split(".")
        assert namespace != linux_processes.read_namespace()
        assert launch_processes.is_alive(process)
        assert linux_processes.is_nested(int(pid), int(start)) is True
        child.stdin.close()
        child.wait(30)
    is_visible = linux_processes.read_namespace() == "4026531836"  # everything is, on the host
    assert launch_processes.is_alive(process) is not is_visible
    assert linux_processes.is_nested(int(pid), int(start)) is (False if is_visible else None)
