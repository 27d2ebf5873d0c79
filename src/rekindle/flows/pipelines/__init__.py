"""Coordinate pipeline runs."""
