"""Install, check and remove Rekindle's plugin in an agent CLI, with the CLI's own commands."""
