"""Start the runs of agents and pipelines that are due."""
