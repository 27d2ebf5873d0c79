"""Build requests to a summarizer, and attribute each line of its answer to a source."""
