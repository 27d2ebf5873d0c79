"""An agent's workflow on the engine, and its orders to hosts."""
