"""Start supervisors and the daemon, and check before the start."""
