"""Read, archive and summarize transcripts."""
