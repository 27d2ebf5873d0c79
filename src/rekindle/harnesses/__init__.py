"""Adapters for agent CLIs: translators without side effects, one package per CLI."""
