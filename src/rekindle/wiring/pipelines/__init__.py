"""Start runs of pipelines, their workers and their coordinators."""
