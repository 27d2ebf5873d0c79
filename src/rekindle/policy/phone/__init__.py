"""Decide which inputs from a phone count, and what the bridge sends to it."""
