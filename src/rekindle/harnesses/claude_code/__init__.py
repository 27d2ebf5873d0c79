"""The harness for Claude Code."""
