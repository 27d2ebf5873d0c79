"""Processes: start, follow, find and end them."""
