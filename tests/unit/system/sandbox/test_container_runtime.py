"""The search for an OCI runtime that works."""

import json

import pytest

from rekindle.system.sandbox import container_runtime

RUNTIME = """#!/bin/sh
while [ "$1" != --bundle ]; do shift; done
cat "$2/config.json" > "$0.json"
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Create a runtime that only keeps its configuration."""
    file = tmp_path / "crun"
    file.write_text(RUNTIME)
    file.chmod(0o755)
    runtime = container_runtime.ContainerRuntime(str(file), has_groups=False)
    monkeypatch.setattr(container_runtime, "_list_candidates", lambda: [runtime])
    monkeypatch.setattr(container_runtime, "_works", [])
    return file


def test_the_empty_container_hides_a_file_as_those_of_agents_do(program):
    assert container_runtime.find_container_obstacle() is None
    mounts = json.loads(program.with_suffix(".json").read_text())["mounts"]
    [hidden] = [one for one in mounts if one["source"] == "/dev/null"]
    assert hidden["options"][-1] == "ro"
