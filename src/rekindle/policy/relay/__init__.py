"""Check a relay: its kind, its size, its decisions, and its convergence on a topic."""
