"""Start one process for a session and follow it until it exits."""
