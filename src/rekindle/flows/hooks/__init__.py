"""Install, check and export the hooks of an agent CLI."""
