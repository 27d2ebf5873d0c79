"""Harness for Claude Code."""
