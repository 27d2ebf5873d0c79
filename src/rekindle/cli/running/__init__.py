"""Commands that start, stop and control agents."""
