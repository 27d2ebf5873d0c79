"""The presets fulfil the contract, with recordings of the real programs."""

from pathlib import Path

from rekindle.harnesses.acp.acp_harness import make_harness
from rekindle.testing.harness_contract import HarnessContract

RECORDINGS = Path(__file__).parents[3] / "recordings" / "acp"


class TestOpencode(HarnessContract):
    harness = make_harness("opencode")
    recordings = RECORDINGS / "opencode-1.18.33"


class TestKilo(HarnessContract):
    harness = make_harness("kilo")
    recordings = RECORDINGS / "kilo-7.7.9"


class TestQwen(HarnessContract):
    harness = make_harness("qwen")
    recordings = RECORDINGS / "qwen-0.24.4"
    keys = ("OPENAI_",)


class TestKimi(HarnessContract):
    harness = make_harness("kimi")
    recordings = RECORDINGS / "kimi-2.1.0"


class TestCopilot(HarnessContract):
    harness = make_harness("copilot")
    recordings = RECORDINGS / "copilot-1.0.102"


class TestClaude(HarnessContract):
    harness = make_harness("claude-acp")
    recordings = RECORDINGS / "claude-acp-0.99.1"
    keys = ("ANTHROPIC_",)


class TestCodex(HarnessContract):
    harness = make_harness("codex-acp")
    recordings = RECORDINGS / "codex-acp-2.6.0"
    keys = ("OPENAI_",)
