"""Test support for authors of harness plugins: the contract, recordings, an in-memory store."""
