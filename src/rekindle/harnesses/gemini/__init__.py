"""The harness for Gemini CLI."""
