"""The raw world: disk, clock, host."""
