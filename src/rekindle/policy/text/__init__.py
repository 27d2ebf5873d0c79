"""Measures of texts: similarity and token counts."""
