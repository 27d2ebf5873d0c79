"""Harness for Codex."""
