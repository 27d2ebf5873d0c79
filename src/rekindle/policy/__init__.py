"""Decisions: (facts, now, settings) to a verdict. Pure: `now` is always passed in."""
