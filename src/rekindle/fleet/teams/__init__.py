"""Teams that share a fleet: their caps, and hosts that accept only some of them."""
