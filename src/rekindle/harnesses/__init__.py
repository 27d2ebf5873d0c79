"""Adapters for agent CLIs. Each CLI has a package that translates, without side effects."""
