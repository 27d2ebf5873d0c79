"""Write the brief of one agent, and build the morning page for all agents."""
