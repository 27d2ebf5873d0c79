"""Documents about runs of pipelines."""
