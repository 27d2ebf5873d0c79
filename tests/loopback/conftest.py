"""The fixtures of this folder, for its own tests."""

from loopback.fixtures import (
    claude,
    claude_program,
    codex,
    codex_program,
    gemini,
    gemini_model,
    gemini_program,
    model,
    network,
    openai_model,
    place,
)

__all__ = [
    "claude",
    "claude_program",
    "codex",
    "codex_program",
    "gemini",
    "gemini_model",
    "gemini_program",
    "model",
    "network",
    "openai_model",
    "place",
]
