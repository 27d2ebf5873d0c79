"""Decide when to replace a session because its context window is full."""
