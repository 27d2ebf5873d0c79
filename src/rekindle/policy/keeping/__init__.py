"""Decide which session to continue that a person started, and when it can be closed."""
