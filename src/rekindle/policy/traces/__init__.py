"""Build spans from an agent's log."""
