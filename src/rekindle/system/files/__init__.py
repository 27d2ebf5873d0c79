"""Files: durable writes, locks, and folders opened without following links."""
