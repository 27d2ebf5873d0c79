"""Documents about one process that runs a session: its command, output and exit."""
