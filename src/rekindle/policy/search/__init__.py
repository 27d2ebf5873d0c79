"""Translate search words into queries."""
