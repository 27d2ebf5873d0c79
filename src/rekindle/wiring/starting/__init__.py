"""Start supervisors and the daemon, and run the checks before a start."""
