"""Adapters for agent CLIs: one package per CLI, each a translator without side effects."""
