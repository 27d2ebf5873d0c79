"""What an agent and an operator may do: trust, protected paths, withheld variables."""
