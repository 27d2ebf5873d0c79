"""Write agents' briefs, and build the morning page."""
