"""What a summarizer is asked, and where each line of its answer comes from."""
