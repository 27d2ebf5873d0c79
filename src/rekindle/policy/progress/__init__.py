"""Decide whether a launch or a cycle made progress, and delay launches if there is none."""
