"""An agent must not write the settings of any CLI or agent that Rekindle can start."""

import pytest

from rekindle.harnesses.acp.acp_presets import PRESETS
from rekindle.wiring.access.protected_paths import list_beside_work


@pytest.mark.parametrize("name", [".opencode", "opencode.json", ".kilo", ".kimi-code", ".claude"])
def test_the_settings_of_agents_are_protected(name, tmp_path):
    """Otherwise, an agent could permit itself what its persona forbids."""
    folder = tmp_path / "work"
    paths = list_beside_work(tmp_path, folder)
    assert {str(tmp_path / name), str(folder / name)} <= set(paths)


def test_every_preset_names_its_settings():
    for preset in PRESETS.values():
        assert preset.settings or preset.instead, preset.name
