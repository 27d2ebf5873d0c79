"""Start, follow, find and end processes."""
