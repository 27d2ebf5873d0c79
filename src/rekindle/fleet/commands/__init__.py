"""Fleet operations behind the commands: define, move, check, read."""
