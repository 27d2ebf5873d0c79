"""Commands that set a project up, check it, or remove it."""
