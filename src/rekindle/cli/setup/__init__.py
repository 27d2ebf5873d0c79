"""Commands that set up, check or remove a project."""
