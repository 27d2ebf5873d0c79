"""Store runs of pipelines in files."""
