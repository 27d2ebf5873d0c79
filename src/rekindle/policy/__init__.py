"""Decisions: facts, settings and `now` in, a verdict out. Pure."""
