"""Scheduled runs of agents and pipelines on a fleet."""
