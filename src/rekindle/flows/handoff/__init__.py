"""Measure how full the context window is, and write the checkpoint for the next session."""
