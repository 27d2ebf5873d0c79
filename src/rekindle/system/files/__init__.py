"""Files: durable writes, locks, and opening folders without following links."""
