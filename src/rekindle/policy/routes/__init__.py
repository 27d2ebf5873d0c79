"""Decide on which route, a CLI and one of its accounts, an agent's work continues."""
