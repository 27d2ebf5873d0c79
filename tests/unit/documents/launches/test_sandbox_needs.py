"""The needs of each CLI in a sandbox."""

import pytest

from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.harnesses import command_harness
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.ports import complete_harness

CLIS = (claude_harness, codex_harness, gemini_harness)


@pytest.mark.parametrize("harness", CLIS)
def test_no_settings_of_a_cli_count_as_its_state(harness):
    """A CLI starts the programs that its settings name, outside the sandbox too."""
    state = harness.SANDBOX.state
    settings = {*harness.HOOK_FILES.deciding, harness.HOOK_FILES.user}
    assert settings.isdisjoint((*state.state, *state.folders))
    assert state.is_closed or settings <= state.settings.keys()


@pytest.mark.parametrize("harness", CLIS)
def test_a_cli_names_the_hosts_of_its_model(harness):
    assert harness.SANDBOX.hosts
    assert harness.SANDBOX.host_variables


def test_another_program_has_no_needs():
    assert SandboxNeeds() == complete_harness(command_harness).SANDBOX
