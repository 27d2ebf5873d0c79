"""Decide whether a launch or a cycle made progress, and pace launches that did not."""
