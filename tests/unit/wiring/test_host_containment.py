"""A host contains its agents, or its worker refuses to start."""

import os

import pytest

from rekindle.errors import SandboxError, UsageError
from rekindle.policy.sandbox.obstacle import HostFacts, explain_obstacle
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.system import host
from rekindle.system.processes import program_search
from rekindle.system.sandbox import host_paths, limit_group, probe
from rekindle.wiring.host_containment import find_host_floor, find_missing_limit


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    monkeypatch.setattr(probe, "find_obstacle", lambda: None)
    monkeypatch.setattr(host, "find_memory", lambda: 8 << 30)
    monkeypatch.setattr(limit_group, "list_controllers", frozenset)
    monkeypatch.setattr(host_paths, "_SECRETS", ())


def test_a_host_limits_its_agents():
    assert find_host_floor("on", 2) == SandboxFloor(4 << 30, 1024)
    assert find_host_floor("off", 2) is None


@pytest.mark.parametrize("limit", [{"memory": 1 << 30}, {"processes": 5}, {"cpu": 1.5}])
def test_a_limit_without_a_sandbox_is_refused(limit):
    with pytest.raises(UsageError, match="has no effect with `--sandbox off`") as caught:
        find_host_floor("off", 2, **limit)
    assert f"--{next(iter(limit))}" in str(caught.value)


def test_a_host_hides_the_keys_of_its_worker(tmp_path):
    (key := tmp_path / "client.key").touch()
    assert find_host_floor("on", 2, secrets=[str(key)]).secrets == (str(key),)


def test_a_host_without_bubblewrap_refuses_to_start(monkeypatch):
    obstacle = explain_obstacle(HostFacts(is_installed=False))
    monkeypatch.setattr(probe, "find_obstacle", lambda: obstacle)
    with pytest.raises(SandboxError, match="bubblewrap, which is not installed") as caught:
        find_host_floor("on", 2)
    assert "start the worker with `--sandbox off`" in caught.value.hint
    assert "`sandbox: off`" not in caught.value.hint
    assert find_host_floor("off", 2) is None


def test_a_host_that_cannot_set_the_limits_refuses_to_start(monkeypatch):
    with pytest.raises(SandboxError, match="`--cpu` has no effect on this host"):
        find_host_floor("on", 2, cpu=1.5)
    monkeypatch.setattr(program_search, "find_executable", lambda _: None)
    with pytest.raises(SandboxError, match="prlimit") as caught:
        find_host_floor("on", 2)
    assert "--sandbox off" in caught.value.hint
    assert "`sandbox:`" not in caught.value.hint


@pytest.mark.parametrize(
    ("user", "controllers", "is_noted"),
    [(0, ("memory",), True), (0, ("memory", "pids"), False), (1000, ("memory",), False)],
)
def test_a_worker_notes_that_root_is_not_limited(monkeypatch, user, controllers, is_noted):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(probe, "require_sandbox", lambda: "bwrap")
    monkeypatch.setattr(limit_group, "list_controllers", lambda: frozenset(controllers))
    note = find_missing_limit(SandboxFloor(4 << 30, 1024))
    assert (
        ("as an ordinary user or with `--sandbox container` or as" in note)
        == is_noted
        == bool(note)
    )
    assert not find_missing_limit(None)


@pytest.mark.parametrize(
    ("user", "controllers", "expected"),
    [
        (1000, (), "memory is limited for each process of an agent"),
        (0, ("pids",), "memory is limited for each process of an agent"),
        (0, (), "is not limited, and memory only for each of them"),
        (0, ("memory", "pids"), ""),
    ],
)
def test_a_worker_notes_that_memory_is_limited_for_each_process(
    monkeypatch, user, controllers, expected
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(probe, "require_sandbox", lambda: "bwrap")
    monkeypatch.setattr(limit_group, "list_controllers", lambda: frozenset(controllers))
    note = find_missing_limit(SandboxFloor(4 << 30, 1024))
    assert expected in note
    assert len(note.splitlines()) == bool(expected)


def test_the_memory_of_a_host_is_not_more_than_its_container_may_use(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(host, "_MEMORY_LIMITS", (tmp_path / "missing",))
    whole = host.find_memory()
    (limit := tmp_path / "limit").write_text("4096\n")
    (none := tmp_path / "none").write_text("max\n")
    monkeypatch.setattr(host, "_MEMORY_LIMITS", (none, limit))
    assert host.find_memory() == 4096 < whole
