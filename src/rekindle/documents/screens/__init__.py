"""Views of agents: rows, tables and the morning page."""
