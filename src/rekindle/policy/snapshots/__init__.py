"""Decide which snapshots of the work tree to keep, and find one by name."""
