"""Start agents and pipelines according to `every:`."""
