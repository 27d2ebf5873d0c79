"""Decisions about work-tree snapshots."""
