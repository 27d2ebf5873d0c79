"""Text formats without a meaning of their own: JSON, YAML, markdown outlines, identifiers. Pure."""
