"""Summarizers for turns: one uses a model without tools, and the other needs no model."""
