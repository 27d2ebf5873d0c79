"""Decide when to replace a session because its window is full."""
