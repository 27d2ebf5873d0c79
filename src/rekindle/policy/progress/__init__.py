"""Decide whether a launch or a cycle made progress, and delay further launches if not."""
