"""Where an agent's truth is kept."""
