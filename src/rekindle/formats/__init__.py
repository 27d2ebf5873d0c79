"""Pure functions for text formats: JSON, YAML, markdown outlines and identifiers."""
