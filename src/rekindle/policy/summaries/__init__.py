"""Requests to a summarizer, and the provenance of each line of its answer."""
