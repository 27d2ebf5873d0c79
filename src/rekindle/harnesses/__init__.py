"""Adapters for agent CLIs: pure translators, one package each."""
