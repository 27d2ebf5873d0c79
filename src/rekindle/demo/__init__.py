"""A demonstration that needs no API key, network or model."""
