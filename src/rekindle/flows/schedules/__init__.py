"""Start due runs of agents and pipelines."""
