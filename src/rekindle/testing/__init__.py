"""For authors of harness plugins: the contract, recordings, and a store in memory."""
