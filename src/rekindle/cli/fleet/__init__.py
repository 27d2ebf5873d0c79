"""Commands for agents on a fleet."""
