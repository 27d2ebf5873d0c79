"""Storage for the agents' state."""
