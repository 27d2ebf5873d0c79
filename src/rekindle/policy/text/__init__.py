"""Measure how similar texts are, and how many tokens they contain."""
