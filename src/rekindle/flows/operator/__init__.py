"""Ask the operator questions, stop agents, and read status rows."""
