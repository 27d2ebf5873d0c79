"""Every harness of ours keeps the contract that plugins are held to."""

from pathlib import Path

import pytest

from rekindle.documents.launch import Start
from rekindle.documents.manifest import Persona
from rekindle.documents.question import Question
from rekindle.harnesses import claude_code, codex, command, gemini
from rekindle.testing.harness_contract import HarnessContract

RECORDINGS = Path(__file__).parents[2] / "recordings"


class TestClaudeCode(HarnessContract):
    harness = claude_code
    recordings = RECORDINGS / "claude-code/2.1.325"
    keys = ("ANTHROPIC_", "AWS_", "GOOGLE_")


class TestCodex(HarnessContract):
    harness = codex
    recordings = RECORDINGS / "codex/0.166.0"
    keys = ("OPENAI_", "AZURE_OPENAI_")


class TestGemini(HarnessContract):
    harness = gemini
    recordings = RECORDINGS / "gemini-cli/0.61.0"
    keys = ("GEMINI_", "GOOGLE_")


class TestCommand(HarnessContract):
    harness = command
    recordings = RECORDINGS / "command/small-programs"


@pytest.mark.parametrize("harness", [claude_code, codex, gemini])
def test_a_persona_s_model_reaches_sessions_and_questions(harness):
    """And no option names a model if the persona does not."""
    session = "6f1c1b7e-2d1b-4c0e-9a53-0d3a7c1f2b4d"

    def options(persona):
        made = (
            harness.command(Start(session=session, persona=persona)),
            harness.command(Start(session=session, resumes=True, persona=persona)),
            harness.ask(Question(scratch="/s", persona=persona)),
        )
        return [[word for word in one.argv if "model" in word] for one in made]

    expected = '--config=model="small"' if harness is codex else "--model=small"
    assert options(Persona(model="small")) == [[expected]] * 3
    assert options(Persona()) == [[], [], []]
