"""Summarizers: one asks a model without tools, the other does not need a model."""
