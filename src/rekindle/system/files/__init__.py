"""Write files durably, lock them, and open folders without following links."""
