"""Git plumbing commands, work tree snapshots, and remote repositories."""
