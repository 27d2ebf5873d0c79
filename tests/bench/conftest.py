"""A place of its own for timings that start agents, and the real CLIs."""

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
