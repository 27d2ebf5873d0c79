"""The fixtures for tests with a real agent CLI."""

from loopback.fixtures import claude, claude_program, model, network

__all__ = ["claude", "claude_program", "model", "network"]
