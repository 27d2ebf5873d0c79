"""An agent's state in a fleet: leases, commits, and checks for the connection settings."""
