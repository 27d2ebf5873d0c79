"""Test support for authors of harness plugins: contract tests and recordings."""
