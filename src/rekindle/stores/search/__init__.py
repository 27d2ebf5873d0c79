"""Index transcripts, relays and decisions for `rekindle search`."""
