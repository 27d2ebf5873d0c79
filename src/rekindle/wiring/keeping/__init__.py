"""Continue sessions that Rekindle did not start."""
