"""Answers from a summarizer, parsed and rendered."""
