"""Start a run of a pipeline on a fleet."""

import pytest

from rekindle import config
from rekindle.errors import ManifestError
from rekindle.fleet.commands.start_pipeline import register_run
from rekindle.policy.settings.runtime_settings import FleetSettings


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("copy: [.env]", "do not have the files of your checkout"),
        ("prepare: [make]", "may continue on another host"),
    ],
)
def test_keys_for_a_clone_on_this_host_are_refused_with_the_reason(tmp_path, key, reason):
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents: {a: {harness: command, command: cat}}\n"
        f"pipelines:\n  ship:\n    {key}\n    steps: [{{id: all, run: [make]}}]\n"
    )
    project = config.load_project(tmp_path)
    with pytest.raises(ManifestError, match=reason) as refused:
        register_run(project, FleetSettings(address="localhost:7233"), "ship", "")
    assert refused.value.line == 5
