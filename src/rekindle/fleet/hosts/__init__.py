"""A fleet host: its worker, its processes, and its copy of an agent's folder."""
