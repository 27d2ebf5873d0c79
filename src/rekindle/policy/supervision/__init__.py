"""Decide the next move of a run: launch, wait, pause or stop."""
