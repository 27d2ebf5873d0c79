"""Fleet operations used by the commands: define, move, check and read agents."""
