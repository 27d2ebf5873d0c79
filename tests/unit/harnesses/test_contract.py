"""Every harness of ours keeps the contract that plugins are held to."""

from pathlib import Path

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
