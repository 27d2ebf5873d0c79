"""Spans of agents' runs, and their OTLP format."""
