"""A host of the fleet: its worker, its processes, its copy of an agent's folder."""
