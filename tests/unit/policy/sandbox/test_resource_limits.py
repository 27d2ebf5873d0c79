"""A limit is enforced by a control group, by prlimit, or not at all."""

import pytest

from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.resource_limits import LimitPlan, plan_limits, render_quota

ALL = SandboxProfile(memory=1 << 30, processes=64, cpu=1.5)
MEMORY_FILES = {"memory.max": "1073741824", "memory.swap.max": "0"}


@pytest.mark.parametrize(
    ("profile", "controllers", "plan"),
    [
        (
            ALL,
            {"memory", "pids", "cpu", "io"},
            LimitPlan(files={**MEMORY_FILES, "pids.max": "64", "cpu.max": "150000 100000"}),
        ),
        (
            ALL,
            {"memory", "pids"},
            LimitPlan(files={**MEMORY_FILES, "pids.max": "64"}, ignores_cpu=True),
        ),
        (ALL, {"memory"}, LimitPlan(files=MEMORY_FILES, processes=64, ignores_cpu=True)),
        (ALL, (), LimitPlan(memory=1 << 30, processes=64, ignores_cpu=True)),
        (SandboxProfile(memory=1, processes=2), (), LimitPlan(memory=1, processes=2)),
        (SandboxProfile(cpu=2.0), {"cpu"}, LimitPlan(files={"cpu.max": "200000 100000"})),
        (SandboxProfile(), {"memory", "pids", "cpu"}, LimitPlan()),
    ],
)
def test_each_limit_is_enforced_where_the_host_permits(profile, controllers, plan):
    assert plan_limits(profile, controllers) == plan


@pytest.mark.parametrize(("cores", "quota"), [(0.01, "1000"), (0.333, "33300"), (16, "1600000")])
def test_a_quota_is_a_share_of_a_period(cores, quota):
    assert render_quota(cores) == f"{quota} 100000"
