"""Runs of pipelines on a fleet: their workflow, and what hosts do for it."""
