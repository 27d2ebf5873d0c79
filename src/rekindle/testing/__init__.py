"""Test support for authors of harness plugins: the contract and recordings."""
