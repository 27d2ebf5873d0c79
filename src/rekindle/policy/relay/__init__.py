"""Check relays: their kind, size, decisions, and convergence on a topic."""
