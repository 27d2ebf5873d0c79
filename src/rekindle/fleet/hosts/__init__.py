"""A host of the fleet: its worker, its processes, and its copy of an agent's folder."""
