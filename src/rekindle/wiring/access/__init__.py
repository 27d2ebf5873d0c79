"""Decide what agents and operators may do: trust, protected paths, withheld variables."""
