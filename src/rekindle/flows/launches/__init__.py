"""Start one process of a session and follow it until it exits."""
