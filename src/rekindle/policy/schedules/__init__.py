"""When agents and pipelines with `every:` are due, and what to do about a missed run."""
