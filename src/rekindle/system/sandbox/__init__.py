"""Sandboxes on this host: the paths that they show, bubblewrap, and network access."""
