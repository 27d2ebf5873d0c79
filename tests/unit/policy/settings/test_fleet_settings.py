"""The settings of a fleet."""

from rekindle.policy.settings import fleet_settings, runtime_settings
from rekindle.policy.settings.fleet_settings import FleetSettings


def test_the_other_settings_export_them():
    for name in fleet_settings.__all__:
        assert getattr(runtime_settings, name) is getattr(fleet_settings, name)


def test_an_agent_belongs_to_no_team_unless_the_manifest_names_one():
    assert FleetSettings().team == ""
