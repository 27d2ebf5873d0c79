"""Decide whether a launch or cycle made progress, and delay launches after work without progress."""
