"""Start a run of a pipeline on a fleet."""

import pytest

from rekindle import config
from rekindle.errors import ManifestError
from rekindle.fleet.commands.start_pipeline import register_run
from rekindle.policy.settings.runtime_settings import FleetSettings


def test_files_of_this_checkout_are_refused_with_the_reason(tmp_path):
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents: {a: {harness: command, command: cat}}\n"
        "pipelines:\n  ship:\n    copy: [.env]\n    steps: [{id: all, run: [make]}]\n"
    )
    project = config.load_project(tmp_path)
    with pytest.raises(ManifestError, match="do not have the files of your checkout") as refused:
        register_run(project, FleetSettings(address="localhost:7233"), "ship", "")
    assert refused.value.line == 5
