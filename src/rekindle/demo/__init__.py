"""A demonstration without a key, a network or a model."""
