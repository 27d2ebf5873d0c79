"""Harness for Gemini CLI."""
