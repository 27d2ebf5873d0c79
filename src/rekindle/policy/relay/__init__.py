"""Checks of the relay: its kind, size, decisions, and convergence on a topic."""
