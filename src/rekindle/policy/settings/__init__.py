"""Settings in rekindle.yaml: defaults, schema, explanations, and the consent that they need."""
