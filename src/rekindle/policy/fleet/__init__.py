"""An agent's state in a fleet: leases, commits, and checks of the connection settings."""
