"""The system calls that a container refuses."""

import pytest

from rekindle.policy.sandbox.syscall_filter import render_filter

RULES = render_filter()["syscalls"]


@pytest.mark.parametrize("call", ["mount", "setns", "unshare", "keyctl", "bpf", "init_module"])
def test_dangerous_calls_are_refused(call):
    [rule] = [rule for rule in RULES if call in rule["names"]]
    assert (rule["action"], rule["errnoRet"]) == ("SCMP_ACT_ERRNO", 1)


@pytest.mark.parametrize("call", ["execve", "ptrace", "socket", "futex", "openat"])
def test_calls_that_agents_need_are_allowed(call):
    assert render_filter()["defaultAction"] == "SCMP_ACT_ALLOW"
    assert [rule for rule in RULES if call in rule["names"]] == []


def test_a_new_process_may_not_have_its_own_namespaces():
    flags = [rule["args"][0]["value"] for rule in RULES if rule["names"] == ["clone"]]
    # From sched.h: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
    assert flags == [0x20000, *(0x02000000 << bit for bit in range(6))]
    [rule] = [rule for rule in RULES if rule["names"] == ["clone3"]]
    assert rule["errnoRet"] == 38, "libraries use `clone` only if `clone3` does not exist"
