"""Adapters for agent CLIs: one package per CLI, without side effects."""
