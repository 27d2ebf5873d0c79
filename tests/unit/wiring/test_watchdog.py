"""An agent's edits of rekindle.yaml neither stop nor silence the watchdog."""

import pytest

from rekindle.wiring.access import trust_checks
from rekindle.wiring.starting.background_start import ProjectWatchdog
from rekindle.wiring.starting.watch_all_projects import AllProjectsWatchdog

MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"]}
"""
FLEET = "fleet: {address: '127.0.0.1:9', tls: false}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    trust_checks.accept_folder(tmp_path)
    yield tmp_path
    trust_checks.forget_folder(tmp_path)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("0s", 1), ("0.001s", 1), ("7s", 7), ("1000d", 300), ("none", 300)],
)
def test_the_interval_has_bounds(folder, written, seconds):
    (folder / "rekindle.yaml").write_text(f"{MANIFEST}runtime: {{watch: {{every: {written}}}}}\n")
    assert ProjectWatchdog(folder).every == seconds


def _look(watching, folder):
    return [found.words for at, found in watching.look() if at == folder]


def test_a_fleet_that_was_added_is_reported_once(folder):
    watching = AllProjectsWatchdog()
    assert len(_look(watching, folder)) == 1  # the state of its agent
    (folder / "rekindle.yaml").write_text(MANIFEST + FLEET)
    [words] = _look(watching, folder)
    assert "`fleet:`: changed without a command from you" in words
    assert _look(watching, folder) == []
    (folder / "rekindle.yaml").write_text(MANIFEST)
    assert _look(watching, folder) == []
    (folder / "rekindle.yaml").write_text(MANIFEST + FLEET)
    assert len(_look(watching, folder)) == 1


def test_the_hosts_of_an_accepted_fleet_keep_its_agents(folder):
    (folder / "rekindle.yaml").write_text(MANIFEST + FLEET)
    trust_checks.accept_folder(folder)
    assert _look(AllProjectsWatchdog(), folder) == []
