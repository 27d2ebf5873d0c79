"""Summarizers of turns: a model without tools, or the mechanical one."""
