"""Answers of a summarizer, parsed and rendered."""
