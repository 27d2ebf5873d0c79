"""Commands that report on agents: status, events, logs, transcripts, briefs."""
