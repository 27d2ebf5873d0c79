"""Every built-in harness fulfils the contract for plugins."""

from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.launches.one_shot import OneShotQuestion
from rekindle.documents.manifest import Persona
from rekindle.harnesses import command_harness
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.testing.harness_contract import HarnessContract

RECORDINGS = Path(__file__).parents[2] / "recordings"


class TestClaudeCode(HarnessContract):
    harness = claude_harness
    recordings = RECORDINGS / "claude-code/2.1.325"
    keys = ("ANTHROPIC_", "AWS_", "GOOGLE_")


class TestCodex(HarnessContract):
    harness = codex_harness
    recordings = RECORDINGS / "codex/0.166.0"
    keys = ("OPENAI_", "AZURE_OPENAI_")


class TestGemini(HarnessContract):
    harness = gemini_harness
    recordings = RECORDINGS / "gemini-cli/0.61.0"
    keys = ("GEMINI_", "GOOGLE_")


class TestCommand(HarnessContract):
    harness = command_harness
    recordings = RECORDINGS / "command/small-programs"


@pytest.mark.parametrize("harness", [claude_harness, codex_harness, gemini_harness])
def test_a_persona_s_model_reaches_sessions_and_questions(harness):
    """No option names a model if the persona does not."""
    session = "6f1c1b7e-2d1b-4c0e-9a53-0d3a7c1f2b4d"

    def options(persona):
        made = (
            harness.command(LaunchSpec(session=session, persona=persona)),
            harness.command(LaunchSpec(session=session, resumes=True, persona=persona)),
            harness.ask(OneShotQuestion(scratch="/s", persona=persona)),
        )
        return [[word for word in one.argv if "model" in word] for one in made]

    expected = '--config=model="small"' if harness is codex_harness else "--model=small"
    assert options(Persona(model="small")) == [[expected]] * 3
    assert options(Persona()) == [[], [], []]
