"""Coordinate the runs of pipelines."""
