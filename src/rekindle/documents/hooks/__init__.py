"""Records that hooks write, and the settings files that install hooks."""
