"""Generic text formats: JSON, YAML, markdown outlines and identifiers. Pure."""
