"""Every harness of ours keeps the contract that plugins are held to."""

from pathlib import Path
from typing import ClassVar

from rekindle.harnesses import claude_code, codex, gemini
from rekindle.testing.harness_contract import HarnessContract
from unit.harnesses import test_claude_code, test_codex, test_gemini

RECORDINGS = Path(__file__).parents[2] / "recordings"


class TestClaudeCode(HarnessContract):
    harness = claude_code
    recordings = RECORDINGS / "claude-code/2.1.325"
    exits: ClassVar = {case: kind for case, (kind, _) in test_claude_code.ENDS.items()}


class TestCodex(HarnessContract):
    harness = codex
    recordings = RECORDINGS / "codex/0.166.0"
    exits: ClassVar = {case: kind for case, (kind, *_) in test_codex.ENDS.items()}


class TestGemini(HarnessContract):
    harness = gemini
    recordings = RECORDINGS / "gemini-cli/0.61.0"
    exits: ClassVar = {case: kind for case, (kind, *_) in test_gemini.ENDS.items()}
