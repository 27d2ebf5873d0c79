"""Schedules of agents and pipelines on a fleet: what the engine starts at each due time."""
