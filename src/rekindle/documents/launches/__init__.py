"""Documents about one process of a session: its command, its output and its exit."""
