"""Transcripts of sessions as turns, in one form for every CLI."""
