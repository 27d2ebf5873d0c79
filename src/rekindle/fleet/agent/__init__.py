"""The workflow of one agent on the engine, and the orders it sends to hosts."""
