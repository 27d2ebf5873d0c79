"""An agent's workflow in the engine, and the orders that it sends to hosts."""
