"""Session transcripts as turns, in one format for all CLIs."""
