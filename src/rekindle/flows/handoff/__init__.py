"""Measure how full the context window is, and write checkpoints."""
