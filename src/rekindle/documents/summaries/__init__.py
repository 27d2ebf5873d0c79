"""Parse and render a summarizer's answers."""
