"""Summarizers of turns: one asks a model without tools, the other needs no model."""
