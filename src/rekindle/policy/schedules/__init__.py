"""Decide when agents and pipelines with `every:` are due, and what to do about missed runs."""
