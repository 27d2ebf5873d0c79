"""Settings in rekindle.yaml: their defaults, schema and explanations, and which need consent."""
