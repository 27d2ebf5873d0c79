"""Commands that start, stop and steer agents."""
