"""The fixtures of this folder, for its own tests."""

from loopback.fixtures import claude, claude_program, model, network, place

__all__ = ["claude", "claude_program", "model", "network", "place"]
