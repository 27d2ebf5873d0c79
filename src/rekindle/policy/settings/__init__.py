"""Settings of rekindle.yaml: defaults, schema, explanations, and which need consent."""
