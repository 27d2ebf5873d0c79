"""Commands that show what agents do and did: status, events, logs, transcripts, briefs."""
