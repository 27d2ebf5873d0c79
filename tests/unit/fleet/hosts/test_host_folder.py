"""The folder of an agent on a host: a link that the agent made leads nothing elsewhere."""

import msgspec
import pytest

from rekindle.errors import StoreError, UnsafePathError
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.policy.fleet.agent_registry import AgentDefinition

MANIFEST = "version: 1\nagents:\n  trades: {prompt: work/docs/agents/PROMPT.md}\n"


@pytest.fixture
def place(tmp_path):
    return HostFolder(tmp_path / "host", "trades", "here")


@pytest.fixture
def definition():
    files = {"work/docs/agents/PROMPT.md": "Trade.\n"}
    return AgentDefinition(manifest=MANIFEST, files=files, pool="pool", heartbeat_seconds=60)


def test_the_files_of_a_definition_are_written(place, definition):
    place.define(definition)
    assert (place.work / "docs/agents/PROMPT.md").read_text() == "Trade.\n"
    assert place.definition() == definition


def test_no_file_of_a_definition_is_written_through_a_link(place, definition, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.work.mkdir(parents=True)
    (place.work / "docs").symlink_to(elsewhere)
    with pytest.raises(StoreError):
        place.define(definition)
    assert list(elsewhere.iterdir()) == []
    assert place.definition() is None


@pytest.mark.parametrize("link", ["work", "work/docs", "work/docs/agents"])
def test_no_session_is_started_through_a_link_out_of_the_workspace(
    place, definition, tmp_path, link
):
    within = msgspec.structs.replace(definition, within="docs/agents")
    place.define(within)
    place.require_own_workspace(within)
    (place.path / link).rename(tmp_path / "elsewhere")
    (place.path / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError):
        place.require_own_workspace(within)
