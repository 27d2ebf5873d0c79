"""Commands that read or change one document: relay, decisions, loops, summaries, redaction."""
