"""One process of a session: how it starts, what it prints, how it exits."""
