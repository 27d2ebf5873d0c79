"""Commands that show what agents are doing and did: status, events, logs, transcripts, briefs."""
