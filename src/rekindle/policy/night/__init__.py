"""An agent's night: what happened between two times, for screens and the morning page."""
