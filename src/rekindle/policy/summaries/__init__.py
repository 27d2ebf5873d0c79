"""Build summarizer requests, and attribute each line of the answer to a source."""
