"""The state of an agent on a fleet: leases, commits, and checks of the connection."""
