"""Check a relay's kind, size and decisions, and whether its topic converges."""
