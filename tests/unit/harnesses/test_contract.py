"""Every harness of ours keeps the contract that plugins are held to."""

from pathlib import Path
from typing import ClassVar

from rekindle.harnesses import claude_code
from rekindle.testing.harness_contract import HarnessContract
from unit.harnesses.test_claude_code import ENDS

RECORDINGS = Path(__file__).parents[2] / "recordings"


class TestClaudeCode(HarnessContract):
    harness = claude_code
    recordings = RECORDINGS / "claude-code/2.1.325"
    exits: ClassVar = {case: kind for case, (kind, _) in ENDS.items()}
