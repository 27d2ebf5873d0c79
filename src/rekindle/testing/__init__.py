"""Test support for harness plugin authors: the contract tests and recordings."""
