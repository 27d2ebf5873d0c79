"""Commands that show what agents do and have done: status, events, logs, transcripts, briefs."""
