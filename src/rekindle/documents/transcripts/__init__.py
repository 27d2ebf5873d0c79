"""Transcripts of sessions as turns, for every CLI in one form."""
