"""Start supervisors and the daemon, and check agents before they start."""
