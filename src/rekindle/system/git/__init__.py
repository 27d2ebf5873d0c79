"""Git: plumbing commands, snapshots of a work tree, and remote repositories."""
