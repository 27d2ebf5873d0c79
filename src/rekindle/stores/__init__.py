"""Storage of the agents' state."""
