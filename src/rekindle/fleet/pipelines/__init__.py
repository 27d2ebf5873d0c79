"""Pipeline runs on a fleet: their workflow, and the tasks that hosts perform for it."""
