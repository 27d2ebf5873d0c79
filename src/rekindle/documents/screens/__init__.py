"""Agents as screens show them: rows, tables and the morning page."""
