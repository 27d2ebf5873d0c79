"""The real agent CLIs, for the tests of this folder."""

from loopback.fixtures import claude, claude_program, model, network

__all__ = ["claude", "claude_program", "model", "network"]
