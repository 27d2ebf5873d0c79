"""Entries of the search index, and search results."""
