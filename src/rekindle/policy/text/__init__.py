"""Measure texts: their similarity and their number of tokens."""
