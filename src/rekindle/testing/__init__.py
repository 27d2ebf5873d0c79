"""For authors of plugins: what a harness must keep, and recordings to hold it to."""
