"""The state of an agent in a fleet: leases, commits, and checks of the connection settings."""
