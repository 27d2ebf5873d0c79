"""Commands that read or change a document: relay, decisions, loops, summaries, redaction."""
