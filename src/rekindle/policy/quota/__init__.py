"""Decide how agents share the quota of an account."""
