"""The harness for Codex."""
