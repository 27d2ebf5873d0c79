"""No program is run and nothing of the user's changes, however many relays are committed.

CI commits a sample; `just torture` a thousand.
"""

import os
import re
import subprocess
import time
from statistics import median

import pytest

from conftest import RELAY
from rekindle.documents import relay
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.audit_trail import AuditTrail
from rekindle.stores.files import FileStore
from rekindle.system.git import git_process
from rekindle.system.git.own_configuration import RepositoryPlace
from throwaway import isolate
from torture.canaries import FILES, HOOKS, PROGRAMS, Canaries

pytestmark = pytest.mark.torture

COMMITS = 1_000 if os.environ.get("REKINDLE_TORTURE") == "whole" else 40


@pytest.fixture
def canaries(tmp_path, monkeypatch):
    return Canaries(tmp_path, isolate(monkeypatch, tmp_path / "home"))


def git_version() -> tuple[int, ...]:
    said = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def test_every_canary_sings_when_an_ordinary_command_wakes_it(canaries):
    """Silence later means something: each of them is armed."""
    wanted = {*HOOKS, *PROGRAMS, *FILES}
    if git_version() >= (2, 54):
        wanted.add("configured-hook")
    assert wanted - canaries.sing() == set()


@pytest.mark.parametrize("careless", ["hooks", "environment"])
def test_the_check_hears_a_careless_call(canaries, monkeypatch, clock, careless):
    """Without our settings a hook sings, with the whole environment a trace."""
    project = canaries.repository.path
    trail = AuditTrail(project, clock=clock, say=print)
    store = FileStore(project, host="here", settings=Settings(), clock=clock, audit=trail)
    store.create("trades")
    for name, value in canaries.environment().items():
        monkeypatch.setenv(name, value)
    if careless == "hooks":
        monkeypatch.delitem(git_process.SAFE_SETTINGS, "core.hooksPath")
        monkeypatch.setattr(RepositoryPlace, "make_environment", lambda _: {})
    else:
        monkeypatch.setattr(git_process, "ENVIRONMENT", (*git_process.ENVIRONMENT, "GIT_TRACE"))
    canaries.clear()
    with store.writer("trades") as writer:
        writer.commit_relay(relay.parse(RELAY), by="agent")
    for name in canaries.environment():
        monkeypatch.delenv(name)
    assert (
        canaries.sung() == {"hooks": {"reference-transaction"}, "environment": {"trace"}}[careless]
    )


def test_no_canary_sings_over_a_thousand_commits(canaries, monkeypatch, clock):
    """Status, index, HEAD, refs and config stay as they were; fsck finds nothing."""
    project = canaries.repository.path
    said, times = [], []
    trail = AuditTrail(project, clock=clock, say=said.append)
    store = FileStore(project, host="here", settings=Settings(), clock=clock, audit=trail)
    store.create("trades")
    before = canaries.repository.users_own()
    canaries.clear()
    with monkeypatch.context() as handed_down:
        for name, value in canaries.environment().items():
            handed_down.setenv(name, value)
        for number in range(COMMITS):
            text = RELAY.replace("parser", f"part {number}")
            start = time.perf_counter()
            with store.writer("trades") as writer:
                writer.commit_relay(relay.parse(text), by="agent")
                locked = time.perf_counter()
            times.append((time.perf_counter() - locked, locked - start))
            clock.forward(seconds=1)
        assert store.inspect("trades") == []
        assert len(store.audit_commits("trades")) == COMMITS
    assert canaries.sung() == set()
    assert said == []
    assert canaries.repository.users_own() == before
    assert canaries.repository.git("fsck", "--strict", "--no-dangling") == ""
    subjects = [subject for _, subject in canaries.repository.trail()]
    assert subjects == [f"Write the part {n}" for n in range(COMMITS)]
    git, rest = (1_000 * median(column) for column in zip(*times, strict=True))
    print(f"\n{COMMITS} commits, 0 canaries sung; median {git:.1f} ms git, {rest:.1f} ms the rest")
